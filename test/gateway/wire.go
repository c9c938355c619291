package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// What is read of the server's frames (doc/hermes/relay.md §5, §6).
type inboundFrame struct {
	Type      string `json:"type"`
	RequestID string `json:"requestId"`
	BufferID  string `json:"bufferId"`
	Result    result `json:"result"`
	Event     event  `json:"event"`
}

type event struct {
	Text        string `json:"text"`
	MessageType string `json:"message_type"`
	MessageID   string `json:"message_id"`
	Source      struct {
		ChatID string `json:"chat_id"`
		UserID string `json:"user_id"`
	} `json:"source"`
	Media []struct {
		URL      string `json:"url"`
		Filename string `json:"filename"`
	} `json:"media"`
	Response *struct {
		PromptID  string `json:"prompt_id"`
		OptionID  string `json:"option_id"`
		MessageID string `json:"prompt_message_id"`
	} `json:"prompt_response"`
}

// result is what answers an op.
type result struct {
	Success   bool   `json:"success"`
	MessageID string `json:"message_id"`
	Error     string `json:"error"`
}

// outcome is what is known of an op.
type outcome int

const (
	done    outcome = iota // success
	refused                // the server said no
	unsent                 // there was no link: the server never had it
	lost                   // the link went before the result came: the server may have done it
	late                   // the link is there, and the result did not come in time
)

// ackTimeout is how long a stock gateway waits for a result.
const ackTimeout = 30 * time.Second

// op sends an op and waits for its result.
func (g *Gateway) op(action map[string]any) (result, outcome) {
	chat, name := action["chat_id"].(string), action["op"].(string)
	g.cfg.OnOp(name)
	id := fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64())
	c := make(chan result, 1)
	g.mu.Lock()
	l := g.link
	if l == nil || !l.ready {
		g.traceLocked(chat, "^ "+brief(action)+" → no link")
		g.mu.Unlock()
		return result{}, unsent
	}
	l.pending[id] = c
	g.traceLocked(chat, "^ "+brief(action))
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(g.ctx, ackTimeout)
	defer cancel()
	defer func() {
		g.mu.Lock()
		delete(l.pending, id)
		g.mu.Unlock()
	}()
	if err := g.write(ctx, l, map[string]any{"type": "outbound", "requestId": id, "action": action}); err != nil {
		_ = l.conn.CloseNow()
		<-l.gone
		return result{}, lost // part of it may have gone out
	}
	select {
	case r := <-c:
		if r.Success {
			return r, done
		}
		g.trace(chat, fmt.Sprintf("v refused %s: %s", name, r.Error))
		return r, refused
	case <-l.gone:
		g.trace(chat, "v no result of "+name+": the link was lost")
		return result{}, lost
	case <-ctx.Done():
		if g.ctx.Err() == nil && !g.cfg.Patient {
			g.fault(fmt.Sprintf("%s in chat %s had no result within %s", name, chat, ackTimeout))
		}
		g.trace(chat, "v no result of "+name+" in time")
		return result{}, late
	}
}

// brief is an action for the trace.
func brief(a map[string]any) string {
	s := fmt.Sprint(a["op"])
	for _, k := range []string{"message_id", "reply_to", "prompt_id", "emoji", "remove", "content"} {
		if v, ok := a[k]; ok && v != nil {
			text := strings.Replace(fmt.Sprint(v), RecoveredPrefix, "♻️… ", 1)
			if len(text) > 90 {
				text = fmt.Sprintf("%.60s… (%d bytes)", text, len(text))
			}
			s += fmt.Sprintf(" %s=%q", k, text)
		}
	}
	return s
}

// frame takes one frame of the server. It runs in the link's reader.
func (g *Gateway) frame(l *link, line string) {
	var f inboundFrame
	if err := json.Unmarshal([]byte(line), &f); err != nil {
		g.fault("the server sent what is no JSON object: " + line[:min(len(line), 80)])
		return
	}
	switch f.Type {
	case "descriptor":
		g.mu.Lock()
		l.ready = true
		g.tellLocked()
		g.mu.Unlock()
	case "inbound":
		g.inbound(&f)
		if f.BufferID != "" { // noted before it is acknowledged
			_ = g.write(g.ctx, l, map[string]any{"type": "inbound_ack", "bufferId": f.BufferID})
		}
	case "outbound_result":
		g.mu.Lock()
		c := l.pending[f.RequestID]
		g.mu.Unlock()
		if c != nil {
			select {
			case c <- f.Result:
			default:
				g.fault("two results for one request")
			}
		}
	}
}

// inbound notes an event. A message_id that was seen before changes nothing (doc/hermes/relay.md §1).
func (g *Gateway) inbound(f *inboundFrame) {
	e := &f.Event
	id := e.Source.ChatID
	g.mu.Lock()
	defer g.mu.Unlock()
	defer g.tellLocked()
	if old := g.rec.seen[key{id, e.MessageID}]; old != nil && e.MessageID != "" {
		old.Arrived++
		g.rec.duplicates++
		g.traceLocked(id, fmt.Sprintf("v inbound %s again, dropped", e.MessageID))
		if old.Text != e.Text {
			g.rec.faults = append(g.rec.faults, fmt.Sprintf("message_id %s of chat %s came with two texts: %.80q and %.80q", e.MessageID, id, old.Text, e.Text))
		}
		return
	}
	in := &Input{Chat: id, MessageID: e.MessageID, Text: e.Text, Arrived: 1}
	g.rec.seen[key{id, e.MessageID}] = in
	if e.Response != nil {
		g.decideLocked(in, e.Response.PromptID, e.Response.OptionID)
		return
	}
	if len(e.Media) > 0 {
		in.url = e.Media[0].URL
	}
	g.traceLocked(id, fmt.Sprintf("v inbound %s %.60q", e.MessageID, e.Text))
	g.rec.inputs = append(g.rec.inputs, in)
	c := g.chats[id]
	if c == nil {
		c = &chat{id: id, wake: make(chan struct{}, 1)}
		g.chats[id] = c
		g.work.Go(func() { g.chat(c) })
	}
	c.queue = append(c.queue, in)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}
