//go:build unix

package hermes

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// frame is any frame of the relay contract, as far as this test reads it.
type frame struct {
	Type      string `json:"type"`
	Platform  string `json:"platform,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	BufferID  string `json:"bufferId,omitempty"`
	Action    action `json:"action,omitzero"`
}

type action struct {
	Op       string          `json:"op"`
	ChatID   string          `json:"chat_id"`
	Content  string          `json:"content"`
	PromptID string          `json:"prompt_id"`
	Metadata json.RawMessage `json:"metadata"`
}

// connector is the smallest relay connector that a gateway is content with: one socket, everything
// answered with success, everything kept.
type connector struct {
	t          testing.TB
	id, secret string
	url        string
	frames     chan frame // what the gateway sent, in order

	mu       sync.Mutex
	conn     *websocket.Conn
	messages int
}

func newConnector(t testing.TB, id, secret string) *connector {
	t.Helper()
	c := &connector{t: t, id: id, secret: secret, frames: make(chan frame, 10000)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /relay", c.serve)
	server := httptest.NewServer(mux)
	c.url = server.URL
	t.Cleanup(func() {
		c.mu.Lock()
		if c.conn != nil {
			_ = c.conn.CloseNow()
		}
		c.mu.Unlock()
		server.Close()
	})
	return c
}

func (c *connector) serve(w http.ResponseWriter, r *http.Request) {
	if err := c.authorise(r.Header.Get("Authorization")); err != nil {
		c.t.Errorf("the gateway's token: %v", err)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(1 << 20)
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			return
		}
		for line := range strings.Lines(string(data)) {
			var f frame
			if err := json.Unmarshal([]byte(line), &f); err != nil {
				c.t.Errorf("not a frame: %v", err)
				return
			}
			if err := c.answer(conn, f); err != nil {
				return
			}
			c.frames <- f
		}
	}
}

// authorise checks base64url("<id>:<expiry>:<hex hmac>").
func (c *connector) authorise(header string) error {
	token, ok := strings.CutPrefix(header, "Bearer ")
	if !ok {
		return errors.New("missing")
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return err
	}
	cut := strings.LastIndexByte(string(raw), ':')
	if cut < 0 {
		return errors.New("without a signature")
	}
	signed, signature := string(raw[:cut]), string(raw[cut+1:])
	mac := hmac.New(sha256.New, []byte(c.secret))
	mac.Write([]byte(signed))
	if !hmac.Equal([]byte(hex.EncodeToString(mac.Sum(nil))), []byte(signature)) {
		return errors.New("signature is wrong")
	}
	expiry, err := strconv.ParseInt(strings.TrimPrefix(signed, c.id+":"), 10, 64)
	if err != nil {
		return fmt.Errorf("is not of %s: %w", c.id, err)
	}
	if time.Now().Unix() > expiry {
		return errors.New("has expired")
	}
	return nil
}

func (c *connector) answer(conn *websocket.Conn, f frame) error {
	switch f.Type {
	case "hello":
		return write(conn, map[string]any{"type": "descriptor", "descriptor": map[string]any{
			"contract_version": 1, "platform": f.Platform, "label": "Mobile", "max_message_length": 4096,
			"supports_draft_streaming": true, "supports_edit": true, "supports_threads": false,
			"markdown_dialect": "markdown", "len_unit": "chars",
			"supported_ops": []string{"send", "edit", "typing", "delete", "draft", "prompt", "send_media", "react"},
		}})
	case "outbound":
		c.mu.Lock()
		c.messages++
		id := fmt.Sprintf("out-%d", c.messages)
		c.mu.Unlock()
		return write(conn, map[string]any{"type": "outbound_result", "requestId": f.RequestID,
			"result": map[string]any{"success": true, "message_id": id}})
	case "going_idle":
		return write(conn, map[string]any{"type": "going_idle_ack"})
	}
	return nil
}

// event is what the user of the chat does.
type event struct {
	ID        string          `json:"message_id"`
	Text      string          `json:"text"`
	Type      string          `json:"message_type"`
	Source    map[string]any  `json:"source"`
	MediaURLs []string        `json:"media_urls,omitempty"`
	Media     []media         `json:"media,omitempty"`
	Prompt    *promptResponse `json:"prompt_response,omitempty"`
}

type media struct {
	URL  string `json:"url"`
	MIME string `json:"mime"`
}

type promptResponse struct {
	ID     string `json:"prompt_id"`
	Option string `json:"option_id"`
}

// say sends an event to the gateway.
func (c *connector) say(e event) {
	c.t.Helper()
	e.Source = map[string]any{
		"platform": "relay", "chat_id": "chat-1", "chat_type": "dm", "chat_name": "Phone",
		"user_id": "user-1", "user_name": "Ann",
	}
	c.send(map[string]any{"type": "inbound", "bufferId": "b-" + e.ID, "event": e})
}

// interrupt stops the running turn.
func (c *connector) interrupt() {
	c.t.Helper()
	c.send(map[string]any{"type": "interrupt_inbound", "session_key": "agent:main:relay:dm:chat-1", "chat_id": "chat-1"})
}

func (c *connector) send(v any) {
	c.t.Helper()
	c.mu.Lock()
	conn := c.conn
	c.mu.Unlock()
	if err := write(conn, v); err != nil {
		c.t.Fatalf("send to the gateway: %v", err)
	}
}

// await returns the next frame that want accepts; the frames before it are dropped.
func (c *connector) await(what string, g *Gateway, want func(frame) bool) frame {
	c.t.Helper()
	deadline := time.After(patience)
	var seen []string
	for {
		select {
		case f := <-c.frames:
			if want(f) {
				return f
			}
			seen = append(seen, fmt.Sprintf("%s %s %q", f.Type, f.Action.Op, f.Action.Content))
		case <-g.Done():
			c.t.Fatalf("%s: the gateway ended; frames: %q", what, seen)
		case <-deadline:
			c.t.Fatalf("%s: nothing in %v; frames: %q", what, patience, seen)
		}
	}
}

func write(conn *websocket.Conn, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, append(data, '\n'))
}
