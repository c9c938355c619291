package relay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// steering is a rig whose gateway adds texts to running turns.
func steering(t *testing.T, v Version) (*rig, *peer) {
	t.Helper()
	r := newRig(t, func(o *Options) {
		o.Known = map[string]Version{"gw": v}
		o.Steers = func(_ context.Context, id string) bool { return id == "gw" }
	})
	p := r.dial()
	r.until("the capability", func() bool { return r.a.Status("tel").Steer })
	return r, p
}

func addition(n, joins int64, text string) agent.Input {
	return agent.Input{N: n, Device: "tel", ID: fmt.Sprintf("app-%d", n), Text: text, Steer: true, Joins: joins}
}

// add adds a text to the turn of input 1, which the gateway takes.
func (p *peer) add(n int64, text string) {
	p.r.t.Helper()
	in, rc := addition(n, 1, text), &receipt{}
	if !p.r.a.Admits(in) {
		p.r.t.Fatalf("%q is not admitted", text)
	}
	p.r.a.Hand(in, rc.taken)
	if ev := p.event(); ev["text"] != text || ev["message_id"] != fmt.Sprintf("m%d-x", n) {
		p.r.t.Errorf("it came as %v", ev)
	}
	p.r.until("taken", func() bool { return rc.is(nil) })
}

// wantReplies checks which message each final answers.
func (r *rig) wantReplies(want map[string]int64) {
	r.t.Helper()
	finals := r.h.finals("tel")
	if len(finals) != len(want) {
		r.t.Errorf("%d finals: %+v", len(finals), finals)
	}
	for _, f := range finals {
		if n, ok := want[f.Text]; !ok || f.N != n || f.ReplyTo != fmt.Sprintf("app-%d", n) {
			r.t.Errorf("%q answers %d (%s), want %d", f.Text, f.N, f.ReplyTo, n)
		}
	}
	if d := r.h.dones("tel"); len(d) == 0 || d[len(d)-1].N != 1 || d[len(d)-1].Interrupted {
		r.t.Errorf("the ends are %+v", d)
	}
}

func draftOf(mid, text string) map[string]any {
	a := obj("op", "draft", "chat_id", "tel", "draft_id", 7, "content", text)
	if mid != "" {
		a["metadata"] = obj("reply_to_message_id", mid)
	}
	return a
}

// While a tool runs, what is added is read with its result, and one reply answers all.
func TestSteerJoins(t *testing.T) {
	for _, v := range []Version{Older, Early, Newer} {
		r, p := steering(t, v)
		if v == Older {
			r.say("tel", 1, "look around")
			p.event()
		} else {
			p.turn("tel", 1, "look around")
		}
		p.add(2, "and milk")
		p.add(3, "and bread")
		p.reply("tel", "m1-x", "all of it")
		if v == Older {
			r.pass(time.Second)
		} else {
			p.end("tel", "m1-x")
		}
		r.wantReplies(map[string]int64{"all of it": 1})
	}
}

// Without a tool what is added is answered after the turn's reply, and no message of that says so.
func TestSteerAnsweredAfter(t *testing.T) {
	r, p := steering(t, Newer)
	p.turn("tel", 1, "tell a story")
	p.ok(draftOf("m1-x", "Once"))
	p.add(2, "a short one")
	p.add(3, "please")
	p.ok(draftOf("m1-x", "Once upon"))
	p.reply("tel", "m1-x", "Once upon a time.")
	p.ok(draftOf("", "It"))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "It ended.", "metadata", obj("notify", true)))
	p.end("tel", "m1-x")
	r.wantReplies(map[string]int64{"Once upon a time.": 1, "It ended.": 3})

	r, p = steering(t, Older)
	r.say("tel", 1, "tell a story")
	p.event()
	p.add(2, "a short one")
	p.ok(obj("op", "send", "chat_id", "tel", "content", "Once upon a time."))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "It ended.", "reply_to", "m1-x", "metadata", obj("notify", true)))
	r.pass(time.Second)
	r.wantReplies(map[string]int64{"Once upon a time.": 1, "It ended.": 2})
	if c := r.a.serves("tel").conversations.all["tel"]; c.turns.question {
		t.Error("a reply was taken for a question")
	}
}

// What reaches a gateway that only begins the turn gets turns of its own.
func TestSteerOwnTurns(t *testing.T) {
	r, p := steering(t, Newer)
	p.turn("tel", 1, "hi")
	p.add(2, "two")
	p.add(3, "three")
	for n, text := range map[int]string{1: "1", 2: "2", 3: "3"} {
		mid := fmt.Sprintf("m%d-x", n)
		p.ok(draftOf(mid, text))
		p.reply("tel", mid, text)
	}
	p.end("tel", "m1-x")
	r.wantReplies(map[string]int64{"1": 1, "2": 2, "3": 3})

	r, p = steering(t, Older)
	r.say("tel", 1, "hi")
	p.event()
	p.add(2, "two")
	p.add(3, "three")
	p.ok(obj("op", "send", "chat_id", "tel", "content", "1"))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "2"))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "3", "reply_to", "m1-x", "metadata", obj("notify", true)))
	r.pass(time.Second)
	r.wantReplies(map[string]int64{"1": 1, "2": 2, "3": 3})
}

// While the gateway waits for an answer a text would be taken for that, so it is held; where the turn ends first, it begins its own.
func TestSteerWhileAsked(t *testing.T) {
	for _, answered := range []bool{true, false} {
		r, p := steering(t, Newer)
		p.turn("tel", 1, "hi")
		p.ok(approval("aa.1"))
		rc := &receipt{}
		in := addition(2, 1, "and milk")
		if !r.a.Admits(in) {
			t.Fatal("not admitted")
		}
		r.a.Hand(in, rc.taken)
		p.nothing()
		if answered {
			r.answer(r.h.asks("tel")[0], agent.Answer{OptionID: "once"})
			if ev := p.event(); ev["prompt_response"] == nil {
				t.Errorf("the answer came as %v", ev)
			}
			if ev := p.event(); ev["text"] != "and milk" {
				t.Errorf("then came %v", ev)
			}
			r.until("taken", func() bool { return rc.is(nil) })
			continue
		}
		r.a.Stop("tel")
		p.expect("interrupt_inbound")
		p.end("tel", "m1-x")
		r.until("its own turn", func() bool { return rc.is(agent.ErrOwnTurn) })
		p.nothing()
	}
}

// Where it cannot be done, or is no plain text for this very turn, it is not admitted.
func TestSteerNotAdmitted(t *testing.T) {
	r, p := steering(t, Newer)
	if r.a.Admits(addition(2, 1, "no turn")) {
		t.Error("admitted without a turn")
	}
	mid := p.turn("tel", 1, "hi")
	for name, in := range map[string]agent.Input{
		"command": addition(2, 1, "/status"), "other turn": addition(2, 9, "hi"),
		"file": {N: 2, Device: "tel", Kind: agent.Media, Joins: 1, File: &agent.File{}},
	} {
		if r.a.Admits(in) {
			t.Errorf("admitted: %s", name)
		}
	}
	p.reply("tel", mid, "done")
	p.react("tel", mid, eyes, true)
	if r.a.Admits(addition(3, 1, "hi")) {
		t.Error("admitted after the marks of the end")
	}

	off := newRig(t, func(o *Options) { o.Steers = func(context.Context, string) bool { return false } })
	p = off.dial()
	p.turn("tel", 1, "hi")
	if off.a.Status("tel").Steer || off.a.Admits(addition(2, 1, "hi")) {
		t.Error("admitted although the gateway cannot")
	}
}

// One that was written when the connection was lost is not sent again where it could be read twice, and the person is told.
func TestSteerInDoubt(t *testing.T) {
	r, p := steering(t, Early)
	p.turn("tel", 1, "hi")
	rc := &receipt{}
	r.a.Hand(addition(2, 1, "and milk"), rc.taken)
	p.expect("inbound")
	p.conn.CloseNow()
	r.until("settled", func() bool { return rc.is(nil) })
	r.dial().nothing()
	if f := r.h.finals("tel"); len(f) != 1 || f[0].Text != messageInDoubt || f[0].N != 2 {
		t.Errorf("the person is told %+v", f)
	}
}
