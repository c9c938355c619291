package relay

import (
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// What waited in an older gateway behind a turn that was stopped is answered under the name of that turn.
func TestOlderAnswersBehindStop(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Older} })
	p := r.dial()
	r.say("tel", 1, "hi")
	p.event()
	r.a.Stop("tel")
	p.expect("interrupt_inbound")
	r.pass(stopGraceOlder + time.Second)
	r.say("tel", 2, "hi again")
	p.event()
	p.reply("tel", "m1-x", "two")
	r.pass(time.Second)
	if f := r.h.finals("tel"); len(f) != 1 || f[0].N != 2 || f[0].Interrupted {
		t.Errorf("the finals are %+v", f)
	}
	if d := r.h.dones("tel"); len(d) != 2 || d[1].N != 2 || d[1].Interrupted {
		t.Errorf("the ends are %+v", d)
	}
}

// A gateway that was exchanged for one of the first with prompts shows it by a prompt whose id has no nonce, or by a reply
// that grows by edits where the newer one sends drafts.
func TestExchangedForAnEarlyOne(t *testing.T) {
	for name, shows := range map[string]func(p *peer){
		"prompt": func(p *peer) { p.ok(clarify("a1b2c3d4")) },
		"edits": func(p *peer) {
			p.ok(obj("op", "send", "chat_id", "tel", "content", "On ▉", "reply_to", "m1-x", "metadata", obj("expect_edits", true)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var last Version
			r := newRig(t, func(o *Options) {
				o.Known = map[string]Version{"gw": Newer}
				o.Remember = func(_ string, v Version) { last = v }
			})
			p := r.dial()
			p.turn("tel", 1, "hi")
			shows(p)
			r.until("the earlier version", func() bool { return last == Early })
		})
	}
}

// 0.20.0 answers a press from within its reader, which is stuck for 30 s then: it gets the number of the choice in words.
func TestChoiceInWords(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	p.ok(clarify("a1b2c3d4"))
	told := r.answer(r.h.asks("tel")[0], agent.Answer{OptionID: "c0"})
	ev := p.event()
	if ev["text"] != "1" || ev["prompt_response"] != nil {
		t.Errorf("the answer is %v", ev)
	}
	r.until("told", func() bool { return told.is(nil) })
	// Other words need a press.
	p.ok(clarify("a1b2c3d5"))
	r.answer(r.h.asks("tel")[1], agent.Answer{OptionID: "other", Text: "Green"})
	if ev := p.event(); ev["prompt_response"] == nil {
		t.Errorf("the answer is %v", ev)
	}
}
