package relay

import (
	"errors"
	"log/slog"
	"strings"

	"hermes-mobile/internal/agent"
)

// readAction reads the action of an outbound frame. What cannot be read comes
// back with a description of why, and is answered with it.
func readAction(env *envelope) *action {
	a := &action{}
	if err := decode(env.Action, a); err != nil {
		*a = action{description: "the action cannot be read"}
	} else if a.ChatID == "" {
		a.description = "no chat_id"
	}
	a.bytes = len(env.Action)
	a.requestID = string(env.RequestID)
	return a
}

// answer sends the result of an outbound op, if it is still waited for.
func (g *gateway) answer(requestID string, r result) {
	if _, ok := g.waiting[requestID]; !ok || g.link == nil {
		return
	}
	delete(g.waiting, requestID)
	g.link.send(encodeResult(requestID, r))
}

// fail answers an op that will never be shown.
func (g *gateway) fail(a *action, text string) {
	g.answer(a.requestID, result{Error: text})
}

// interim answers an op of which nothing is stored: at once, before any other
// work (relay-facts §7), or when the hub is quick again.
func (g *gateway) interim(a *action, messageID string) {
	if g.slow() && len(g.held) < hardPending {
		g.held = append(g.held, a.requestID)
		return
	}
	g.answer(a.requestID, result{Success: true, MessageID: messageID})
}

// settle returns what answers an op when its events are stored.
func (g *gateway) settle(a *action, messageID string) func(error) {
	return func(err error) {
		switch {
		case err == nil:
			g.answer(a.requestID, result{Success: true, MessageID: messageID})
		case errors.Is(err, agent.ErrNoDevice):
			g.fail(a, "no such device")
		default:
			g.note(slog.LevelError, "relay: cannot store what the gateway sent", "op", string(a.Op), "err", err)
			g.fail(a, "cannot be stored now")
		}
	}
}

// outbound takes one op of the gateway (relay-facts §4). Every one is answered.
func (g *gateway) outbound(env *envelope, a *action, owner *gateway) {
	if a.requestID == "" {
		return // cannot be answered, so it is not done
	}
	if _, twice := g.waiting[a.requestID]; twice {
		return
	}
	if len(g.waiting) >= 2*hardPending {
		g.overload("unanswered ops")
		return
	}
	g.waiting[a.requestID] = g.a.now()
	g.saw(a)
	if p := string(env.Platform); p != "" && len(g.names) > 0 && p == g.names[0] {
		g.known = p
	}
	if a.description != "" {
		g.fail(a, a.description)
		return
	}
	if owner != g {
		g.a.count(CountForeign, g.config().ID)
		g.note(slog.LevelWarn, "relay: op for a device that this gateway does not serve", "op", clip(string(a.Op)), "device", clip(string(a.ChatID)))
		g.fail(a, "this device is not served by this gateway")
		return
	}
	device := string(a.ChatID)
	c := g.convos[device]
	switch a.Op {
	case "typing":
		g.interim(a, "")
		g.opTyping(c)
	case "react":
		g.interim(a, "")
		g.opReact(c, a)
	case "get_chat_info":
		g.answer(a.requestID, result{Success: true, ChatInfo: &chatInfo{Name: device, Type: "dm"}})
	case "draft", "edit", "send", "prompt", "send_media":
		if c == nil {
			if c = g.convo(device); c == nil {
				g.fail(a, "too many conversations")
				return
			}
		}
		c.op = g.a.now()
		if p := string(a.Metadata.Profile); p != "" && len(p) <= maxProfile {
			c.profile = p
		}
		g.claim(c, a)
		switch a.Op {
		case "draft":
			g.interim(a, "")
			g.opDraft(c, a)
		case "edit":
			g.opEdit(c, a)
		case "send":
			g.sawSend(c, a)
			g.opSend(c, a)
		case "prompt":
			g.opPrompt(c, a)
		case "send_media":
			g.opMedia(c, a)
		}
	case "delete":
		g.fail(a, "messages cannot be taken back")
	default:
		g.fail(a, "unsupported op")
	}
}

// maxProfile bounds the name of a profile, which is kept for each conversation.
const maxProfile = 256

// opSend takes a message: a whole one, or the first piece of one that will be
// edited.
func (g *gateway) opSend(c *convo, a *action) {
	if a.Metadata.JobID != "" {
		g.opCron(c, a)
		return
	}
	if g.swallow(c, a) {
		return
	}
	g.truthful(c, a)
	repeats, of := g.recovered(c, a)
	replyID := a.replyID()
	t := c.turnOf(replyID)
	if t != nil {
		g.alive(t)
		t.content = true
	}
	if text, _ := cutCursor(string(a.Content)); strings.TrimSpace(text) == "" && !a.Metadata.ExpectEdits {
		g.answer(a.requestID, result{Success: true, MessageID: agent.NewID()})
		g.afterSend(c, t, a)
		return
	}
	if r := c.repeat(a, g.a.now()); r != nil {
		g.a.count(CountRepeat, g.config().ID)
		g.note(slog.LevelInfo, "relay: a message that was there already", "device", c.device, "message", r.id)
		g.joinRepeat(r, a)
		g.afterSend(c, t, a)
		return
	}
	if a.Metadata.ExpectEdits && !a.Metadata.Notify {
		// Beside drafts it is the first part of a long reply, whole (§4), unless
		// it has a cursor: then the gateway went back to the edit form.
		if _, cut := cutCursor(string(a.Content)); cut || c.draftOf(replyID) == nil {
			g.beginStream(c, t, a)
			return
		}
	}
	text, cut := cutCursor(string(a.Content))
	if strings.TrimSpace(text) == "" {
		g.answer(a.requestID, result{Success: true, MessageID: agent.NewID()})
		return
	}
	id, before := g.takeOver(c, a)
	if before == nil && a.plain() {
		t = nil // nobody asked for it
	}
	say := g.say(t, id, endText(text)) // after a tool 0.20.0 leaves blank lines before it
	say.Final, say.Repeats = true, repeats
	if of != nil {
		say.N = of.n
	}
	if t == nil && replyID != "" || t != nil && t.handed { // what it said in our earlier life it may say again
		say.Repeats = text
	}
	say.Interrupted = cut || t != nil && t.stopping
	events := append(before, say)
	g.storeFinal(c, replyID, say, g.settle(a, id), events...)
	g.afterSend(c, c.turnOf(replyID), a)
}

// recovered reads a reply that the gateway sends again because it missed our answer (relay-facts §10), and returns its
// text without the line that says so, and the turn that was running when the connection was lost, if one was: mostly it
// is the reply to that.
func (g *gateway) recovered(c *convo, a *action) (text string, of *turn) {
	if a.replyID() != "" || !isRecovered(string(a.Content)) {
		return "", nil
	}
	head, text, ok := strings.Cut(string(a.Content), "\n")
	if text = strings.TrimLeft(text, "\n"); !ok || text == "" || len(head) > maxPrefix {
		return "", nil
	}
	if t := c.turn; t != nil && t.acked && (t.handed || t.began.Before(g.helloAt)) {
		t.content = true
		of = t
	}
	return text, of
}

// storeFinal stores events of which say is a final message, and remembers it
// for repeats.
func (g *gateway) storeFinal(c *convo, replyID string, say agent.Say, then func(error), events ...agent.Event) {
	r := c.remember(replyID, say, g.a.now())
	g.store(c.device, len(say.Text), func(err error) {
		r.stored = err == nil
		if err != nil {
			c.unremember(r)
		}
		then(err)
		for _, w := range r.waiters {
			w(err)
		}
		r.waiters = nil
	}, events...)
}

// say returns a message of turn t, which may be nil.
func (g *gateway) say(t *turn, id, text string) agent.Say {
	s := agent.Say{ID: id, Text: text}
	if t != nil {
		s.ReplyTo, s.N = t.inputID, t.n
	}
	return s
}
