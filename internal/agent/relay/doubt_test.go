package relay

import (
	"errors"
	"slices"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// repeats are the versions that run an event again which comes again, and what is assumed of one that is not known.
var repeats = map[string]Version{"unknown": Unknown, "0.19": Older, "0.20": Early}

func gatewayOf(v Version) func(*Options) {
	return func(o *Options) { o.Known = map[string]Version{"gw": v} }
}

// given are the notes that something is, or is not after all, with the gateway.
func (h *fakeHost) given(device string) (list []agent.Given) {
	for _, e := range h.all(device) {
		if g, ok := e.(agent.Given); ok {
			list = append(list, g)
		}
	}
	return list
}

// An event that may have arrived when the connection was lost never comes a second time, and the person is told.
func TestNeverTwice(t *testing.T) {
	for name, v := range repeats {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, gatewayOf(v))
			p := r.dial()
			first := r.say("tel", 1, "pay the bill")
			p.expect("inbound") // and no receipt
			p.conn.CloseNow()
			r.until("gone", func() bool { return !r.a.Status("tel").Online })
			if !first.is(nil) {
				t.Errorf("the input was given back: %v", first.got)
			}
			p = r.dial()
			p.nothing()
			r.pass(idleDoubt + time.Second)
			p.nothing()
			if f := r.h.finals("tel"); len(f) != 1 || f[0].Text != messageInDoubt || f[0].N != 1 || f[0].ReplyTo != "app-1" {
				t.Errorf("the person is told %+v", f)
			}
			if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 1 || !d[0].Interrupted {
				t.Errorf("the ends are %+v", d)
			}
			p.turn("tel", 2, "next")
		})
	}
}

// Where the gateway shows that it has the event there is no doubt, and its reply is that of the message.
func TestDoubtDispelled(t *testing.T) {
	for name, v := range repeats {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, gatewayOf(v))
			p := r.dial()
			r.say("tel", 1, "pay the bill")
			p.expect("inbound")
			p.conn.CloseNow()
			r.until("gone", func() bool { return !r.a.Status("tel").Online })
			p = r.dial()
			if v != Older {
				p.react("tel", "m1-x", eyes, false)
			}
			r.pass(idleDoubt / 2)
			p.reply("tel", "m1-x", "paid")
			r.pass(idleDoubt)
			if v != Older {
				p.end("tel", "m1-x")
			}
			if f := r.h.finals("tel"); len(f) != 1 || f[0].Text != "paid" || f[0].N != 1 {
				t.Errorf("the finals are %+v", f)
			}
		})
	}
}

// A gateway that drops repeats gets the event again.
func TestRepeatWhereKnown(t *testing.T) {
	r := newRig(t, gatewayOf(Newer))
	p := r.dial()
	r.say("tel", 1, "pay the bill")
	p.expect("inbound")
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	if ev := r.dial().event(); ev["message_id"] != "m1-x" {
		t.Errorf("then came %v", ev)
	}
	if g := r.h.given("tel"); len(g) != 0 {
		t.Errorf("a commit more for %+v", g)
	}
}

// Before an event is written it is stored that it is: nothing goes out before, nor where that cannot be stored.
func TestGivenBeforeWritten(t *testing.T) {
	r := newRig(t, gatewayOf(Early))
	p := r.dial()
	quiet := func() { // without waiting for what is held
		t.Helper()
		if m := p.op(obj("op", "get_chat_info", "chat_id", "sync")); m["success"] != true || len(p.in) != 0 {
			t.Fatalf("something was written: %v, %d frames more", m, len(p.in))
		}
	}
	r.h.set(true, nil)
	r.say("tel", 1, "hi")
	quiet()
	r.h.release()
	p.event()
	r.until("noted", func() bool { g := r.h.given("tel"); return len(g) == 1 && g[0] == agent.Given{N: 1} })

	r.h.set(false, errors.New("disk full"))
	rc := r.say("other", 2, "hi")
	p.nothing()
	r.until("given back", func() bool { return rc.is(agent.ErrAway) })
	r.h.set(true, nil)
	rc = r.say("other", 2, "hi")
	quiet()
	p.conn.CloseNow() // nothing was written
	r.until("given back", func() bool { return rc.is(agent.ErrAway) })
	r.h.release()
	r.until("taken back", func() bool {
		g := r.h.given("other")
		return len(g) == 2 && slices.Contains(g, agent.Given{N: 2, Back: true})
	})
}

// After a crash of ours an input that was perhaps given is not sent again.
func TestDoubtAfterACrash(t *testing.T) {
	for _, texts := range []int{0, 1} {
		r := newRig(t, gatewayOf(Early))
		rc := &receipt{}
		r.a.Hand(agent.Input{N: 7, Device: "tel", ID: "app-7", Text: "from before", Handed: true, Texts: texts}, rc.taken)
		p := r.dial()
		p.nothing()
		r.pass(idleUntyped + time.Second)
		r.until("ended", func() bool { return len(r.h.dones("tel")) == 1 })
		told := 0
		for _, f := range r.h.finals("tel") {
			if f.Text == messageInDoubt && f.N == 7 {
				told++
			}
		}
		if told != 1-texts {
			t.Errorf("with %d texts stored the doubt was told %d times", texts, told)
		}
	}
}

// A decision that may have arrived is not told again: it could be taken for the answer to another question, or for a message.
func TestAnswerNeverTwice(t *testing.T) {
	for _, option := range []string{"c0", "other"} {
		t.Run(option, func(t *testing.T) {
			r := newRig(t, gatewayOf(Early))
			p := r.dial()
			p.turn("tel", 1, "hi")
			p.ok(clarify("a1b2c3d4"))
			card := r.h.asks("tel")[0]
			rc := r.answer(card, agent.Answer{OptionID: option, Text: "Green"})
			p.expect("inbound")
			if g := r.h.given("tel"); len(g) != 2 || g[1] != (agent.Given{Card: card.ID}) {
				t.Errorf("before it was written was stored %+v", g)
			}
			p.conn.CloseNow()
			r.until("settled", func() bool { return rc.is(nil) })
			p = r.dial()
			p.nothing()
			r.pass(idleDoubt + time.Second)
			if f := r.h.finals("tel"); len(f) != 1 || f[0].Text != answerInDoubt {
				t.Errorf("the person is told %+v", f)
			}
		})
	}
}
