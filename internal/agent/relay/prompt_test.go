package relay

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"hermes-mobile/internal/agent"
)

func approval(id string) map[string]any {
	return obj("op", "prompt", "chat_id", "tel", "content", "⚠️ may I?\n\n```\nrm x\n```\nReason: r", "prompt_kind", "approval", "prompt_id", id,
		"options", []any{obj("id", "once", "label", "Once", "style", "primary"), obj("id", "deny", "label", "No", "style", "danger")})
}

func clarify(id string) map[string]any {
	return obj("op", "prompt", "chat_id", "tel", "content", "Which?", "prompt_kind", "clarify", "prompt_id", id,
		"options", []any{obj("id", "c0", "label", "Red"), obj("id", "other", "label", "Other")})
}

func (r *rig) answer(card agent.Card, a agent.Answer) *receipt {
	rc := &receipt{}
	r.a.Answer(card, a, rc.taken)
	return rc
}

// Two cards at once, answered in reverse order; ids that are empty or repeated.
func TestCards(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	msg := p.ok(approval("aa.1"))
	p.ok(approval("aa.1"))
	p.ok(approval(""))
	p.ok(obj("op", "prompt", "chat_id", "tel", "content", "sure?", "prompt_kind", "approval", "prompt_id", "aa.2", "options",
		[]any{obj("id", "once"), obj("id", "cancel", "label", "No"), obj("id", "cancel")}))
	p.ok(obj("op", "prompt", "chat_id", "tel", "content", "rate", "prompt_kind", "stars", "prompt_id", "aa.3", "options", []any{obj("id", "1", "label", "*")}))
	cards := r.h.asks("tel")
	if len(cards) != 5 {
		t.Fatalf("%d cards", len(cards))
	}
	ids := map[string]bool{}
	for i, want := range []string{"exec_approval", "exec_approval", "exec_approval", "slash_confirm", "stars"} {
		c := cards[i]
		if c.Kind != want || c.ID == "" || ids[c.ID] || c.N != 1 {
			t.Errorf("card %+v", c)
		}
		ids[c.ID] = true
	}
	if c := cards[0]; c.Command != "rm x" || c.Description != "r" || msg != cardPrefix+c.ID || c.Options[1].Style != "danger" {
		t.Errorf("card %+v", c)
	}
	if c := cards[3]; len(c.Options) != 2 || c.Options[0].Label != "Yes, this once" {
		t.Errorf("card %+v", c)
	}
	for _, i := range []int{1, 0} {
		rc := r.answer(cards[i], agent.Answer{OptionID: "once"})
		ev := p.event()
		pr := ev["prompt_response"].(map[string]any)
		if ev["text"] != "/once" || ev["message_type"] != "command" || pr["prompt_id"] != "aa.1" || pr["option_id"] != "once" ||
			pr["prompt_message_id"] != cardPrefix+cards[i].ID || ev["source"].(map[string]any)["user_id"] != "user-1" {
			t.Errorf("answer %v", ev)
		}
		p.ok(obj("op", "send", "chat_id", "tel", "content", "✅ Approved once", "reply_to", nil))
		r.until("taken", func() bool { return rc.is(nil) })
	}
	p.ok(obj("op", "send", "chat_id", "tel", "content", "a notice", "reply_to", nil))
	same(t, r.texts("tel"), "a notice")
	// An edit of the prompt closes it.
	p.ok(obj("op", "edit", "chat_id", "tel", "message_id", msg, "content", "timed out"))
	same(t, r.h.closes("tel"), cards[0].ID)
	// A prompt of another process closes those of the one before.
	p.ok(approval("bb.1"))
	r.until("closed", func() bool { return len(r.h.closes("tel")) >= 3 })
	// An answer to one of those is for nobody.
	rc := r.answer(cards[3], agent.Answer{OptionID: "once"})
	r.until("taken", func() bool { return rc.is(nil) })
	p.nothing()
	p.send(obj("type", "going_idle"))
	p.expect("going_idle_ack")
	r.until("closed", func() bool { return len(r.h.closes("tel")) >= 4 })
	rc = r.answer(r.h.asks("tel")[5], agent.Answer{OptionID: "deny"})
	r.until("away", func() bool { return rc.is(agent.ErrAway) })
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	p = r.dial()
	rc = r.answer(r.h.asks("tel")[5], agent.Answer{OptionID: "deny"})
	r.until("taken", func() bool { return rc.is(nil) })
	p.nothing()
}

func TestClarifyWords(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	p.ok(clarify("aa.1"))
	card := r.h.asks("tel")[0]
	rc := r.answer(card, agent.Answer{OptionID: "other", Text: "Green"})
	press := p.event()
	if press["text"] != "/other" {
		t.Errorf("%v", press)
	}
	words := p.expect("inbound")
	ev := words["event"].(map[string]any)
	if ev["text"] != "Green" || ev["message_type"] != "text" || ev["prompt_response"] != nil || rc.calls() != 0 {
		t.Errorf("%v", ev)
	}
	p.ok(obj("op", "send", "chat_id", "tel", "content", "✏️ Type your answer:", "reply_to", nil))
	p.send(obj("type", "inbound_ack", "bufferId", words["bufferId"]))
	r.until("taken", func() bool { return rc.is(nil) })
	if len(r.h.finals("tel")) != 0 || len(r.h.dones("tel")) != 0 {
		t.Errorf("%v", r.h.all("tel"))
	}
	// Told again after a restart of ours: the same ids.
	rc = r.answer(card, agent.Answer{OptionID: "other", Text: "Green"})
	if again := p.event(); again["message_id"] != press["message_id"] {
		t.Errorf("%v", again)
	}
	if again := p.event(); again["message_id"] != ev["message_id"] {
		t.Errorf("%v", again)
	}
	r.until("taken", func() bool { return rc.is(nil) })
	// Nobody answered: the agent is told to go on, as soon as the press was
	// confirmed.
	r.pass(confirmWithin + 1)
	p.ok(clarify("aa.2"))
	rc = r.answer(r.h.asks("tel")[1], agent.Answer{Expired: true})
	p.event()
	p.nothing()
	p.ok(obj("op", "send", "chat_id", "tel", "content", "✏️", "reply_to", nil))
	if ev := p.event(); ev["text"] != skipWord {
		t.Errorf("%v", ev)
	}
	r.until("taken", func() bool { return rc.is(nil) })
}

// After a restart of ours it is not known whether the prompt's process lives:
// own words follow only when the press was confirmed.
func TestClarifyWordsUnsure(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	state := encode(cardState{Gateway: "gw", Chat: "tel", Prompt: "aa.1", Nonce: "aa", Kind: "clarify", User: "u1", UserName: "Ann", Name: "Phone"})
	card := agent.Card{ID: agent.NewID(), Kind: "clarify", State: state, Options: []agent.Option{{ID: "other"}}}
	rc := r.answer(card, agent.Answer{OptionID: "other", Text: "Green"})
	if src := p.event()["source"].(map[string]any); src["user_id"] != "u1" || src["chat_name"] != "Phone" {
		t.Errorf("%v", src)
	}
	p.nothing()
	r.pass(confirmWithin + 2e9)
	if !rc.is(nil) {
		t.Error("never settled")
	}
	p.nothing()
	card.ID = agent.NewID()
	rc = r.answer(card, agent.Answer{OptionID: "other", Text: "Green"})
	p.event()
	p.ok(obj("op", "send", "chat_id", "tel", "content", "✏️", "reply_to", nil))
	if ev := p.event(); ev["text"] != "Green" {
		t.Errorf("%v", ev)
	}
	r.until("taken", func() bool { return rc.is(nil) })
	// A clarify that expired while nothing runs has nobody to tell.
	rc = r.answer(card, agent.Answer{Expired: true})
	r.until("taken", func() bool { return rc.is(nil) })
	p.nothing()
	// Not ours.
	rc = r.answer(agent.Card{ID: "x", State: []byte("{")}, agent.Answer{OptionID: "deny"})
	if !rc.is(nil) {
		t.Error("blocks")
	}
}

// Cards that were stored in an earlier life and belong to an earlier process of
// the gateway are closed when that is known.
func TestStoredCards(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	st := func(g, nonce string) []byte {
		return encode(cardState{Gateway: g, Chat: "tel", Prompt: nonce + ".1", Nonce: nonce})
	}
	r.h.mu.Lock()
	r.h.cards["tel"] = []agent.Card{{ID: "old", State: st("gw", "aa")}, {ID: "same", State: st("gw", "bb")}, {ID: "other", State: st("else", "aa")}, {ID: "demo", State: nil}}
	r.h.mu.Unlock()
	p.turn("tel", 1, "hi")
	p.ok(approval("bb.2"))
	r.until("closed", func() bool { return len(r.h.closes("tel")) > 0 })
	r.settle()
	same(t, r.h.closes("tel"), "old")
}

func TestPromptNotStored(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	r.h.set(false, errors.New("disk full"))
	if res := p.op(approval("aa.1")); res["success"] == true {
		t.Errorf("%v", res)
	}
}

// A gateway cuts a long command. The card says so, for nobody can see what would run besides.
func TestCutCommand(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	for i, tc := range []struct {
		command string
		cut     bool
	}{
		{strings.Repeat("x", 1500) + "...", true},
		{strings.Repeat("👍", 750) + "...", true},
		{strings.Repeat("x", 1500), false},
		{strings.Repeat("x", 1400) + "...", false},
		{"ls ...", false},
	} {
		op := approval(fmt.Sprint("aa.", i))
		op["content"] = "⚠️ may I?\n\n```\n" + tc.command + "\n```\nReason: r"
		p.ok(op)
		cards := r.h.asks("tel")
		if c := cards[len(cards)-1]; c.Command != tc.command || c.Cut != tc.cut || strings.Contains(c.Text, "only the beginning") != tc.cut {
			t.Errorf("card %+v", c)
		}
	}
}
