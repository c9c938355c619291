package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Raw is one connection of a gateway whose every line a test writes itself: for gateways that break the contract, and for
// what a stock one does only by chance. It reads all the time and does nothing by itself.
type Raw struct {
	cfg    Config
	conn   *websocket.Conn
	client *http.Client
	done   chan struct{} // reading has ended

	mu       sync.Mutex
	changed  chan struct{}
	frames   []Frame // that no test has taken, results aside
	results  map[string]Result
	counted  int // results that nobody waits for
	refused  int // of those
	code     int
	requests int
}

// Frame is what a server sends to a gateway.
type Frame struct {
	Type       string `json:"type"`
	BufferID   string `json:"bufferId"`
	SessionKey string `json:"session_key"`
	ChatID     string `json:"chat_id"`
	Event      Event  `json:"event"`
}

// Event is what a person did.
type Event struct {
	Text      string
	MessageID string
	Chat      string
	Prompt    string // the prompt that it answers, and how
	Option    string
	URL       string // of a file that came with it
}

// UnmarshalJSON reads an event as it is on the wire.
func (e *Event) UnmarshalJSON(b []byte) error {
	var w event
	if err := json.Unmarshal(b, &w); err != nil {
		return err
	}
	*e = Event{Text: w.Text, MessageID: w.MessageID, Chat: w.Source.ChatID}
	if w.Response != nil {
		e.Prompt, e.Option = w.Response.PromptID, w.Response.OptionID
	}
	if len(w.Media) > 0 {
		e.URL = w.Media[0].URL
	}
	return nil
}

// Result is the answer to an op.
type Result = result

// Refusal is an upgrade that was answered with another status.
type Refusal struct{ Status int }

func (r *Refusal) Error() string {
	return fmt.Sprintf("gateway: the upgrade was answered with %d", r.Status)
}

// Dial connects with a token that was made at a time, and says nothing yet. Of cfg it needs URL, ID and Secret.
func Dial(ctx context.Context, cfg Config, made time.Time) (*Raw, error) {
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	client := &http.Client{Transport: &http.Transport{}}
	conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(cfg.URL, "http")+"/relay", &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + token(cfg.ID, cfg.Secret, made)}}})
	if err != nil {
		client.CloseIdleConnections()
		if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
			return nil, &Refusal{resp.StatusCode}
		}
		return nil, err
	}
	conn.SetReadLimit(-1)
	r := &Raw{cfg: cfg, conn: conn, client: client, done: make(chan struct{}), changed: make(chan struct{}), results: map[string]Result{}}
	go r.read()
	return r, nil
}

func (r *Raw) read() {
	defer close(r.done)
	var rest []byte
	for {
		_, data, err := r.conn.Read(context.Background())
		r.mu.Lock()
		if err != nil {
			r.code = int(websocket.CloseStatus(err))
		} else {
			rest = append(rest, data...)
			for {
				line, more, ok := bytes.Cut(rest, []byte("\n"))
				if !ok {
					break
				}
				r.takeLocked(line)
				rest = more
			}
		}
		close(r.changed)
		r.changed = make(chan struct{})
		r.mu.Unlock()
		if err != nil {
			_ = r.conn.CloseNow()
			return
		}
	}
}

func (r *Raw) takeLocked(line []byte) {
	var f struct {
		Frame
		RequestID string `json:"requestId"`
		Result    Result `json:"result"`
	}
	if json.Unmarshal(line, &f) != nil {
		f.Type = "unreadable"
	}
	if f.Type != "outbound_result" {
		r.frames = append(r.frames, f.Frame)
		return
	}
	if _, wanted := r.results[f.RequestID]; wanted {
		return // a second answer
	}
	if strings.HasPrefix(f.RequestID, "op-") {
		r.results[f.RequestID] = f.Result
		return
	}
	r.counted++ // of a flood: not kept
	if !f.Result.Success {
		r.refused++
	}
}

// Close cuts the connection without a word.
func (r *Raw) Close() {
	_ = r.conn.CloseNow()
	<-r.done
	r.client.CloseIdleConnections()
}

// Gone is closed when the connection has ended; Code then is how.
func (r *Raw) Gone() <-chan struct{} { return r.done }

// Code is the close code of a connection that has ended; -1: there was none.
func (r *Raw) Code() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.code
}

// Answered returns how many ops were answered whose request ids are not Do's, and how many of them with a refusal.
func (r *Raw) Answered() (all, refused int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counted, r.refused
}

// Line writes bytes as one message.
func (r *Raw) Line(ctx context.Context, b []byte) error {
	return r.conn.Write(ctx, websocket.MessageText, b)
}

// Write writes a frame.
func (r *Raw) Write(ctx context.Context, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return r.Line(ctx, append(b, '\n'))
}

// wait waits until take returns true, which is called when something came.
func (r *Raw) wait(ctx context.Context, take func() bool) error {
	for {
		r.mu.Lock()
		ok, changed := take(), r.changed
		r.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-r.done:
			r.mu.Lock()
			defer r.mu.Unlock()
			if take() {
				return nil
			}
			return fmt.Errorf("gateway: the connection was closed with %d", r.code)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Next takes the next frame of a type; others stay. The results of ops are none.
func (r *Raw) Next(ctx context.Context, kind string) (got Frame, err error) {
	err = r.wait(ctx, func() bool {
		for i, f := range r.frames {
			if f.Type == kind {
				got = f
				r.frames = append(r.frames[:i:i], r.frames[i+1:]...)
				return true
			}
		}
		return false
	})
	if err != nil {
		err = fmt.Errorf("wait for %s: %w", kind, err)
	}
	return got, err
}

// Pending returns how many frames of a type have come and were not taken.
func (r *Raw) Pending(kind string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.frames {
		if f.Type == kind {
			n++
		}
	}
	return n
}

// Hello says hello under a name and waits for the answer.
func (r *Raw) Hello(ctx context.Context, name string) error {
	if err := r.Write(ctx, map[string]any{"type": "hello", "platform": name, "botId": ""}); err != nil {
		return err
	}
	_, err := r.Next(ctx, "descriptor")
	return err
}

// Take takes the next event and acknowledges it.
func (r *Raw) Take(ctx context.Context) (Event, error) {
	f, err := r.Next(ctx, "inbound")
	if err != nil {
		return Event{}, err
	}
	return f.Event, r.Write(ctx, map[string]any{"type": "inbound_ack", "bufferId": f.BufferID})
}

// Do sends an op and waits for its result.
func (r *Raw) Do(ctx context.Context, action map[string]any) (res Result, err error) {
	r.mu.Lock()
	r.requests++
	id := fmt.Sprint("op-", r.requests)
	r.mu.Unlock()
	if err := r.Write(ctx, map[string]any{"type": "outbound", "requestId": id, "action": action}); err != nil {
		return res, err
	}
	err = r.wait(ctx, func() (ok bool) { res, ok = r.results[id]; return ok })
	if err != nil {
		err = fmt.Errorf("result of %v: %w", action["op"], err)
	}
	return res, err
}

// Must is Do for an op that must succeed.
func (r *Raw) Must(ctx context.Context, action map[string]any) (Result, error) {
	res, err := r.Do(ctx, action)
	if err == nil && !res.Success {
		err = fmt.Errorf("gateway: %v was refused: %s", action["op"], res.Error)
	}
	return res, err
}

// Begin marks a message of a person as being worked on.
func (r *Raw) Begin(ctx context.Context, e Event) error {
	_, err := r.Must(ctx, map[string]any{"op": "react", "chat_id": e.Chat, "message_id": e.MessageID, "emoji": "👀", "remove": false})
	return err
}

// Reply sends the answer to a message.
func (r *Raw) Reply(ctx context.Context, e Event, text string) error {
	_, err := r.Must(ctx, map[string]any{"op": "send", "chat_id": e.Chat, "content": text, "reply_to": e.MessageID,
		"metadata": map[string]any{"notify": true, "reply_to_message_id": e.MessageID}})
	return err
}

// End marks a message as done.
func (r *Raw) End(ctx context.Context, e Event) error {
	var errs []error
	for _, m := range []struct {
		emoji  string
		remove bool
	}{{"👀", true}, {"✅", false}} {
		_, err := r.Must(ctx, map[string]any{"op": "react", "chat_id": e.Chat, "message_id": e.MessageID, "emoji": m.emoji, "remove": m.remove})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Turn is Begin, Reply and End.
func (r *Raw) Turn(ctx context.Context, e Event, text string) error {
	if err := r.Begin(ctx, e); err != nil {
		return err
	}
	if err := r.Reply(ctx, e, text); err != nil {
		return err
	}
	return r.End(ctx, e)
}

// Upload brings a file to the server and returns its id and the status.
func (r *Raw) Upload(ctx context.Context, name, mime string, data []byte) (id string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.cfg.URL+"/relay/media", bytes.NewReader(data))
	if err != nil {
		return "", 0, err
	}
	req.Header.Set("Content-Type", mime)
	req.Header.Set("X-Media-Filename", name)
	resp, err := r.http(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	var answer struct {
		ID string `json:"id"`
	}
	if resp.StatusCode == http.StatusOK {
		err = json.NewDecoder(resp.Body).Decode(&answer)
	}
	return answer.ID, resp.StatusCode, err
}

// Fetch reads a file that came with an event and returns its SHA-256 and the status.
func (r *Raw) Fetch(ctx context.Context, url string) (sha string, status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", 0, err
	}
	resp, err := r.http(req)
	if err != nil {
		return "", 0, err
	}
	defer resp.Body.Close()
	h := sha256.New()
	_, err = io.Copy(h, resp.Body)
	return hex.EncodeToString(h.Sum(nil)), resp.StatusCode, err
}

func (r *Raw) http(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+token(r.cfg.ID, r.cfg.Secret, time.Now()))
	return r.client.Do(req)
}
