package relay

import (
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// shownIDs are the texts of the messages of a device, each step and the end, by id in the order they began.
func (h *fakeHost) shown(device string) (ids []string, texts map[string][]agent.Say) {
	texts = map[string][]agent.Say{}
	for _, e := range h.all(device) {
		if s, ok := e.(agent.Say); ok {
			if texts[s.ID] == nil {
				ids = append(ids, s.ID)
			}
			texts[s.ID] = append(texts[s.ID], s)
		}
	}
	return ids, texts
}

// neverShorter checks that no message shrinks.
func (r *rig) neverShorter(texts map[string][]agent.Say) {
	r.t.Helper()
	for _, list := range texts {
		for i := 1; i < len(list); i++ {
			if !strings.HasPrefix(list[i].Text, list[i-1].Text) {
				r.t.Errorf("%q became %q", list[i-1].Text, list[i].Text)
			}
		}
	}
}

// killed begins a reply, and lets the gateway's process die and come back.
func killed(t *testing.T, edits bool) (*rig, *peer) {
	t.Helper()
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	if edits {
		out := p.ok(obj("op", "send", "chat_id", "tel", "content", "Once upon ▉", "reply_to", mid, "metadata", obj("expect_edits", true)))
		p.ok(obj("op", "edit", "chat_id", "tel", "message_id", out, "content", "Once upon a ti ▉"))
	} else {
		p.ok(draftOf(mid, "Once upon"))
		p.ok(draftOf(mid, "Once upon a ti"))
	}
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	r.pass(8 * time.Second)
	p = r.dial()
	r.pass(idleUntyped + 10*time.Second) // it loads for long
	if d := r.h.dones("tel"); len(d) != 0 {
		t.Fatalf("the turn ended before the gateway went on with it: %+v", d)
	}
	return r, p
}

// The reply of a gateway that was killed goes on under its id, and never gets shorter.
func TestSameIDAfterACrash(t *testing.T) {
	const whole = "Once upon a time there was."
	for name, resume := range map[string]func(p *peer){
		"drafts": func(p *peer) {
			for _, text := range []string{"On", "Once upon a", "Once upon a time", whole} {
				p.ok(draftOf("", text))
			}
			p.ok(obj("op", "send", "chat_id", "tel", "content", whole, "metadata", obj("notify", true)))
		},
		"edits": func(p *peer) {
			out := p.ok(obj("op", "send", "chat_id", "tel", "content", "On ▉", "metadata", obj("expect_edits", true)))
			for _, text := range []string{"Once upon a ▉", "Once upon a time ▉", whole} {
				p.ok(obj("op", "edit", "chat_id", "tel", "message_id", out, "content", text))
			}
			p.ok(obj("op", "typing", "chat_id", "tel"))
		},
		"whole": func(p *peer) {
			p.ok(obj("op", "send", "chat_id", "tel", "content", whole, "metadata", obj("notify", true)))
		},
	} {
		for _, edits := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				r, p := killed(t, edits)
				resume(p)
				r.pass(lingerUnnamed + time.Second)
				ids, texts := r.h.shown("tel")
				r.neverShorter(texts)
				if len(ids) != 1 {
					t.Fatalf("%d messages: %+v", len(ids), texts)
				}
				list := texts[ids[0]]
				if last := list[len(list)-1]; last.Text != whole || !last.Final || last.Interrupted || last.N != 1 {
					t.Errorf("the end is %+v", last)
				}
			})
		}
	}
}

// Another text than before does not take the place of what was shown.
func TestOtherReplyAfterACrash(t *testing.T) {
	for _, edits := range []bool{false, true} {
		r, p := killed(t, edits)
		p.ok(draftOf("", "Once"))
		p.ok(draftOf("", "Once more"))
		p.ok(obj("op", "send", "chat_id", "tel", "content", "Once more.", "metadata", obj("notify", true)))
		r.pass(lingerUnnamed + time.Second)
		ids, texts := r.h.shown("tel")
		r.neverShorter(texts)
		if len(ids) != 2 {
			t.Fatalf("%d messages: %+v", len(ids), texts)
		}
		old, fresh := texts[ids[0]], texts[ids[1]]
		if last := old[len(old)-1]; last.Text != "Once upon a ti" || !last.Final || !last.Interrupted {
			t.Errorf("the first ended as %+v", last)
		}
		if last := fresh[len(fresh)-1]; last.Text != "Once more." || !last.Final || last.Interrupted || last.N != 1 {
			t.Errorf("the second ended as %+v", last)
		}
	}
}

// Where the gateway does not go on with the turn, what was shown is ended as it is.
func TestNoReplyAfterACrash(t *testing.T) {
	for _, begun := range []bool{false, true} {
		r, p := killed(t, false)
		if begun {
			p.ok(draftOf("", "On")) // and dies again
			p.conn.CloseNow()
			r.until("gone", func() bool { return !r.a.Status("tel").Online })
			r.dial()
		}
		r.pass(startupGrace + time.Second)
		r.until("ended", func() bool { return len(r.h.dones("tel")) == 1 })
		_, texts := r.h.shown("tel")
		r.neverShorter(texts)
		if f := r.h.finals("tel"); len(f) != 1 || f[0].Text != "Once upon a ti" || !f[0].Interrupted {
			t.Errorf("the finals are %+v", f)
		}
	}
}

// A gateway that was stopped in mid-turn may take the turn up again when it is back. What comes for it meanwhile would join
// that turn, so it waits: until the gateway has been seen to be done with it, or to do nothing.
func TestWaitsForWhatIsResumed(t *testing.T) {
	for _, resumes := range []bool{true, false} {
		r := newRig(t, nil)
		p := r.dial()
		p.turn("tel", 1, "hi")
		p.send(obj("type", "going_idle"))
		p.expect("going_idle_ack")
		p.conn.CloseNow()
		r.until("gone", func() bool { return !r.a.Status("tel").Online })
		p = r.dial()
		r.say("tel", 2, "and now")
		r.say("other", 3, "of another conversation")
		if ev := p.event(); ev["text"] != "of another conversation" {
			t.Fatalf("then came %v", ev)
		}
		if resumes {
			for i := range 10 {
				r.pass(time.Duration(i) * time.Second) // its event loop stands still now and then
				p.ok(obj("op", "typing", "chat_id", "tel"))
				p.nothing()
			}
			r.pass(idleUntyped - time.Second)
			p.nothing()
			p.ok(obj("op", "send", "chat_id", "tel", "content", "the rest", "metadata", obj("notify", true)))
			r.pass(settleMax + time.Second)
		} else {
			r.pass(resumeSign - time.Second)
			p.nothing()
			r.pass(2 * time.Second)
		}
		if ev := p.event(); ev["text"] != "and now" {
			t.Errorf("then came %v", ev)
		}
	}
}
