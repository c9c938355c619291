package relay

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-json-experiment/json"

	"hermes-mobile/internal/agent"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// fakeHost records what it is told.
type fakeHost struct {
	mu      sync.Mutex
	events  map[string][]agent.Event
	cards   map[string][]agent.Card
	fail    error
	hold    bool
	held    []func()
	changed int
	woken   chan struct{}
}

func newHost() *fakeHost {
	return &fakeHost{events: map[string][]agent.Event{}, cards: map[string][]agent.Card{}, woken: make(chan struct{}, 1)}
}

func (h *fakeHost) wake() {
	select {
	case h.woken <- struct{}{}:
	default:
	}
}

func (h *fakeHost) Post(device string, done func(error), events ...agent.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.wake()
	err := h.fail
	if strings.HasPrefix(device, "unknown") {
		err = agent.ErrNoDevice
	}
	if h.hold && done != nil {
		h.held = append(h.held, func() {
			h.mu.Lock()
			h.record(device, events)
			h.mu.Unlock()
			done(nil)
		})
		return
	}
	if err == nil {
		h.record(device, events)
	}
	if done != nil {
		go done(err)
	}
}

func (h *fakeHost) record(device string, events []agent.Event) {
	h.events[device] = append(h.events[device], events...)
}

func (h *fakeHost) set(hold bool, fail error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hold, h.fail = hold, fail
}

func (h *fakeHost) release() {
	h.mu.Lock()
	held := h.held
	h.held, h.hold = nil, false
	h.mu.Unlock()
	for _, f := range held {
		f()
	}
}

func (h *fakeHost) Changed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changed++
	h.wake()
}

func (h *fakeHost) OpenCards(_ context.Context, device string) ([]agent.Card, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cards[device], nil
}

func (h *fakeHost) all(device string) []agent.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]agent.Event(nil), h.events[device]...)
}

// finals returns the final messages of a device.
func (h *fakeHost) finals(device string) (says []agent.Say) {
	for _, e := range h.all(device) {
		if s, ok := e.(agent.Say); ok && s.Final {
			says = append(says, s)
		}
	}
	return says
}

func (h *fakeHost) dones(device string) (dones []agent.Done) {
	for _, e := range h.all(device) {
		if d, ok := e.(agent.Done); ok {
			dones = append(dones, d)
		}
	}
	return dones
}

func (h *fakeHost) asks(device string) (cards []agent.Card) {
	for _, e := range h.all(device) {
		if a, ok := e.(agent.Ask); ok {
			cards = append(cards, a.Card)
		}
	}
	return cards
}

func (h *fakeHost) closes(device string) (ids []string) {
	for _, e := range h.all(device) {
		if c, ok := e.(agent.CloseCard); ok {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// dirFiles is agent.Files in a folder.
type dirFiles struct{ dir string }

func (f dirFiles) Put(r io.Reader, limit int64) (string, int64, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errors.New("too large")
	}
	if err != nil {
		return "", int64(len(b)), err
	}
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	return hash, int64(len(b)), os.WriteFile(filepath.Join(f.dir, hash), b, 0o600)
}

func (f dirFiles) Open(hash string) (io.ReadSeekCloser, error) {
	return os.Open(filepath.Join(f.dir, hash))
}

func (f dirFiles) LocalCopy(hash, name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(f.dir, hash))
	if err != nil {
		return "", err
	}
	p := filepath.Join(f.dir, "copy-"+name)
	return p, os.WriteFile(p, b, 0o600)
}

func (f dirFiles) put(t testing.TB, content string) (hash string) {
	hash, _, err := f.Put(strings.NewReader(content), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// rig is an agent behind a real HTTP server with a clock that tests move.
type rig struct {
	t     testing.TB
	a     *Agent
	h     *fakeHost
	clock *clock
	srv   *httptest.Server
	files dirFiles
	// ignore is a kind of frame that peers are not shown; set before they dial.
	ignore any
	stop   func()
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	r := unbegun(t, change)
	r.begin()
	return r
}

// unbegun is a rig whose agent does not run yet.
func unbegun(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, h: newHost(), clock: &clock{t: time.Unix(1_800_000_000, 0)}, files: dirFiles{t.TempDir()}}
	o := Options{
		Gateways: []Gateway{{ID: "gw", Secret: "s3cret"}}, Files: r.files, Now: r.clock.now,
		Key: []byte("key"), Instance: "x", Known: map[string]Version{"gw": Newer, "b": Newer},
	}
	if change != nil {
		change(&o)
	}
	r.a = New(o)
	r.a.tick = 2 * time.Millisecond
	r.srv = httptest.NewServer(r.a.Handler())
	return r
}

func (r *rig) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := r.a.Run(ctx, r.h); err != nil {
			r.t.Error(err)
		}
	}()
	for r.a.running() == nil {
		time.Sleep(time.Millisecond)
	}
	var once sync.Once
	r.stop = func() {
		once.Do(func() {
			cancel()
			<-ended
			r.srv.Close()
		})
	}
	r.t.Cleanup(r.stop)
}

// until waits until cond holds.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			r.t.Fatalf("timeout: %s\n%s", what, r.dump())
		}
		select {
		case <-r.h.woken:
		case <-time.After(300 * time.Microsecond):
		}
	}
}

func (r *rig) dump() string {
	var b strings.Builder
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	for d, ev := range r.h.events {
		for _, e := range ev {
			fmt.Fprintf(&b, "%s: %T %+v\n", d, e, e)
		}
	}
	return b.String()
}

// settle waits until all gateways have told all they have to tell.
func (r *rig) settle() {
	r.t.Helper()
	r.until("settled", func() bool {
		for _, g := range r.a.routes.Load().list {
			g.seq.Lock()
			quiet := g.seq.quiet() && g.reports.pending == 0
			g.seq.Unlock()
			if !quiet {
				return false
			}
		}
		return true
	})
}

// pass moves the clock in steps and lets the agent look at it.
func (r *rig) pass(d time.Duration) {
	r.t.Helper()
	r.move(d)
	r.settle()
}

func (r *rig) move(d time.Duration) {
	for d > 0 {
		step := min(d, 100*time.Millisecond)
		if d > 30*time.Second {
			step = time.Second
		}
		r.clock.add(step)
		d -= step
		for _, g := range r.a.routes.Load().list {
			g.clock()
		}
	}
}

func bearer(id, secret string, exp time.Time) string {
	signed := fmt.Sprintf("%s:%d", id, exp.Unix())
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(signed))
	return "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(signed+":"+hex.EncodeToString(m.Sum(nil))))
}

// peer is the gateway's side of a connection.
type peer struct {
	r    *rig
	conn *websocket.Conn
	in   chan map[string]any // frames from the agent
	gone chan struct{}
	code websocket.StatusCode
	n    int

	pings atomic.Int64 // that came
	still atomic.Bool  // its event loop stands still: it answers none
}

func (r *rig) dialAs(id, secret string, header ...string) (*peer, *http.Response, error) {
	headers := http.Header{"Authorization": {bearer(id, secret, r.clock.now().Add(300*time.Second))}}
	for i := 0; i < len(header); i += 2 {
		headers.Set(header[i], header[i+1])
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	p := &peer{r: r, in: make(chan map[string]any, 10000), gone: make(chan struct{})}
	answers := func(context.Context, []byte) bool {
		p.pings.Add(1)
		return !p.still.Load()
	}
	conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(r.srv.URL, "http")+"/relay", &websocket.DialOptions{HTTPHeader: headers, OnPingReceived: answers})
	if err != nil {
		return nil, resp, err
	}
	conn.SetReadLimit(-1)
	p.conn = conn
	go func() {
		defer close(p.gone)
		var rest []byte
		for {
			_, b, err := conn.Read(context.Background())
			if err != nil {
				p.code = websocket.CloseStatus(err)
				conn.CloseNow()
				return
			}
			rest = append(rest, b...)
			for {
				line, more, ok := bytes.Cut(rest, []byte("\n"))
				if !ok {
					break
				}
				rest = more
				var m map[string]any
				if err := json.Unmarshal(line, &m); err != nil {
					r.t.Errorf("bad line from the agent: %s", line)
				}
				if m["type"] != r.ignore {
					p.in <- m
				}
			}
		}
	}()
	r.t.Cleanup(func() { conn.CloseNow(); <-p.gone })
	return p, resp, nil
}

// dial connects and says hello.
func (r *rig) dial(names ...string) *peer {
	r.t.Helper()
	p, _, err := r.dialAs("gw", "s3cret")
	if err != nil {
		r.t.Fatal(err)
	}
	return p.hello(names...)
}

func (p *peer) hello(names ...string) *peer {
	p.r.t.Helper()
	if len(names) == 0 {
		names = []string{"relay"}
	}
	for _, n := range names {
		p.send(map[string]any{"type": "hello", "platform": n, "botId": ""})
	}
	for _, n := range names {
		d := p.expect("descriptor")["descriptor"].(map[string]any)
		if d["platform"] != n {
			p.r.t.Fatalf("descriptor of %v, want %s", d["platform"], n)
		}
	}
	return p
}

func (p *peer) raw(b []byte) {
	p.r.t.Helper()
	if err := p.conn.Write(context.Background(), websocket.MessageText, b); err != nil {
		p.r.t.Logf("write: %v", err)
	}
}

func (p *peer) send(frame any) {
	p.r.t.Helper()
	b, err := json.Marshal(frame)
	if err != nil {
		p.r.t.Fatal(err)
	}
	p.raw(append(b, '\n'))
}

// next returns the next frame from the agent.
func (p *peer) next() map[string]any {
	p.r.t.Helper()
	select {
	case m := <-p.in:
		return m
	case <-p.gone:
		select {
		case m := <-p.in:
			return m
		default:
		}
		p.r.t.Fatalf("connection closed with %d while a frame was expected", p.code)
	case <-time.After(10 * time.Second):
		p.r.t.Fatalf("no frame from the agent\n%s", p.r.dump())
	}
	return nil
}

func (p *peer) expect(kind string) map[string]any {
	p.r.t.Helper()
	m := p.next()
	if m["type"] != kind {
		p.r.t.Fatalf("got %v, want a %s", m, kind)
	}
	return m
}

// op sends an outbound and returns its result.
func (p *peer) op(action map[string]any) map[string]any {
	p.r.t.Helper()
	id := p.ask(action)
	m := p.expect("outbound_result")
	if m["requestId"] != id {
		p.r.t.Fatalf("result of %v, want %s", m["requestId"], id)
	}
	return m["result"].(map[string]any)
}

func (p *peer) ask(action map[string]any) string {
	p.n++
	id := fmt.Sprintf("r%d", p.n)
	p.send(map[string]any{"type": "outbound", "requestId": id, "action": action})
	return id
}

// ok does an op that must succeed and returns its message id.
func (p *peer) ok(action map[string]any) string {
	p.r.t.Helper()
	res := p.op(action)
	if res["success"] != true {
		p.r.t.Fatalf("%v: %v", action, res)
	}
	id, _ := res["message_id"].(string)
	return id
}

// event expects an inbound frame, acknowledges it and returns its event.
func (p *peer) event() map[string]any {
	p.r.t.Helper()
	m := p.expect("inbound")
	p.send(map[string]any{"type": "inbound_ack", "bufferId": m["bufferId"]})
	return m["event"].(map[string]any)
}

// sync waits until all frames sent so far have been worked on.
func (p *peer) sync() {
	p.r.t.Helper()
	p.op(map[string]any{"op": "get_chat_info", "chat_id": "sync"})
	p.r.settle()
}

// nothing asserts that the agent sent nothing, after a round trip.
func (p *peer) nothing() {
	p.r.t.Helper()
	p.sync()
	select {
	case m := <-p.in:
		p.r.t.Fatalf("unexpected frame %v", m)
	default:
	}
}

// receipt collects what taken was called with.
type receipt struct {
	mu  sync.Mutex
	got []error
}

func (r *receipt) taken(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, err)
}

func (r *receipt) is(want ...error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.got) != len(want) {
		return false
	}
	for i := range want {
		if !errors.Is(r.got[i], want[i]) {
			return false
		}
	}
	return true
}

func (r *receipt) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.got)
}

// say hands a text of device d over.
func (r *rig) say(d string, n int64, text string) *receipt {
	rc := &receipt{}
	r.a.Hand(agent.Input{N: n, Device: d, DeviceName: "Phone", User: "user-1", UserName: "Ann", ID: fmt.Sprintf("app-%d", n), Text: text}, rc.taken)
	return rc
}

// turn hands a text over and plays the beginning of its turn in a newer gateway.
func (p *peer) turn(d string, n int64, text string) (mid string) {
	p.r.t.Helper()
	rc := p.r.say(d, n, text)
	ev := p.event()
	mid = ev["message_id"].(string)
	p.react(d, mid, "👀", false)
	p.ok(map[string]any{"op": "typing", "chat_id": d})
	p.r.until("taken", func() bool { return rc.is(nil) })
	return mid
}

func (p *peer) react(d, mid, emoji string, remove bool) {
	p.r.t.Helper()
	p.ok(map[string]any{"op": "react", "chat_id": d, "message_id": mid, "emoji": emoji, "remove": remove})
}

// end plays the marks at the end of a turn.
func (p *peer) end(d, mid string) {
	p.r.t.Helper()
	p.react(d, mid, "👀", true)
	p.react(d, mid, "✅", false)
	p.r.pass(time.Second)
}

func (p *peer) reply(d, mid, text string) string {
	p.r.t.Helper()
	return p.ok(map[string]any{"op": "send", "chat_id": d, "content": text, "reply_to": mid,
		"metadata": map[string]any{"notify": true, "reply_to_message_id": mid}})
}
