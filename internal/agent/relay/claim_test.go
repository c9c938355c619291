package relay

import (
	"testing"
	"time"
)

// What a newer gateway says about a turn without naming it, as recorded: an event that it queued while it started, and a
// turn that it goes on with after it was killed.
func TestTurnThatIsNotNamed(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	unnamed := func(text string, n int) {
		t.Helper()
		p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 7+n, "content", text[:5], "final", false))
		p.ok(obj("op", "send", "chat_id", "tel", "content", text, "reply_to", nil, "metadata", obj("notify", true)))
		r.pass(3 * time.Second)
		finals, dones := r.h.finals("tel"), r.h.dones("tel")
		if len(finals) != n || finals[n-1].Text != text || finals[n-1].N != int64(n) || finals[n-1].Interrupted {
			t.Errorf("the finals are %+v", finals)
		}
		if len(dones) != n || dones[n-1].N != int64(n) || dones[n-1].Interrupted {
			t.Errorf("the ends are %+v", dones)
		}
	}
	mid := p.turn("tel", 1, "hi")
	p.end("tel", mid) // the marks of queueing
	r.pass(10 * time.Second)
	if d := r.h.dones("tel"); len(d) > 0 {
		t.Fatalf("ended before it began: %+v", d)
	}
	p.ok(obj("op", "typing", "chat_id", "tel"))
	unnamed("the first", 1)

	mid = p.turn("tel", 2, "hi again")
	p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 1, "content", "the sec", "final", false, "metadata", obj("reply_to_message_id", mid)))
	r.pass(time.Second)
	p = r.dial()
	p.ok(obj("op", "send", "chat_id", "tel", "content", "♻️ Recovered reply:\n\nsomething old", "reply_to", nil, "metadata", obj("notify", true)))
	if f := r.h.finals("tel"); f[len(f)-1].ReplyTo != "" {
		t.Errorf("a recovered reply counts for the turn: %+v", f)
	}
	r.h.mu.Lock()
	r.h.events["tel"] = nil
	r.h.mu.Unlock()
	p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 9, "content", "the s", "final", false))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "the second", "reply_to", nil, "metadata", obj("notify", true)))
	r.pass(3 * time.Second)
	if f, d := r.h.finals("tel"), r.h.dones("tel"); len(f) != 1 || f[0].Text != "the second" || f[0].N != 2 || len(d) != 1 || d[0].N != 2 {
		t.Errorf("the finals are %+v, the ends %+v", f, d)
	}

	// Nobody waits for the turn any more: what the gateway says of it comes once all the same.
	p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 10, "content", "the th", "final", false))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "the third", "reply_to", nil, "metadata", obj("notify", true)))
	r.pass(time.Minute)
	if f := r.h.finals("tel"); len(f) != 2 || f[1].Text != "the third" || f[1].N != 0 || f[1].Interrupted {
		t.Errorf("the finals are %+v", f)
	}
}

// A turn that ends takes the card it waited for with it, and leaves that of a command.
func TestCardEndsWithTurn(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "/new")
	ask := func(id string, options ...string) {
		t.Helper()
		var list []any
		for _, o := range options {
			list = append(list, obj("id", o, "label", o))
		}
		p.ok(obj("op", "prompt", "chat_id", "tel", "prompt_kind", "approval", "prompt_id", "aa."+id, "content", "?", "options", list))
	}
	ask("1", "once", "cancel")
	p.end("tel", mid)
	p.turn("tel", 2, "do it")
	ask("2", "once", "deny")
	r.a.Stop("tel")
	p.expect("interrupt_inbound")
	r.pass(stopGrace + time.Second)
	if closed, asked := r.h.closes("tel"), r.h.asks("tel"); len(asked) != 2 || len(closed) != 1 || closed[0] != asked[1].ID {
		t.Errorf("of the cards %+v these were closed: %q", asked, closed)
	}
}
