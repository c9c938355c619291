package relay

import (
	"fmt"
	"testing"
	"time"
)

// An older gateway is given a moment before a command follows a turn; other messages follow at once.
func TestOlderRestsBeforeCommand(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Older} })
	p := r.dial()
	done := func(n int) {
		t.Helper()
		r.pass(lingerNotify + 200*time.Millisecond)
		if d := r.h.dones("tel"); len(d) != n {
			t.Fatalf("the ends are %+v", d)
		}
	}
	r.say("tel", 1, "hi")
	p.event()
	p.reply("tel", "m1-x", "one")
	done(1)
	r.say("tel", 2, "hi again")
	p.event()
	p.reply("tel", "m2-x", "two")
	done(2)
	rc := r.say("tel", 3, "/status")
	p.nothing()
	r.rest()
	p.event()
	r.until("taken", func() bool { return rc.is(nil) })
}

// A newer gateway is left alone for a moment, too, before it gets a command; words go at once.
func TestNewerRestsBeforeACommand(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": Newer} })
	p := r.dial()
	turn := func(n int64, text string) {
		t.Helper()
		r.say("tel", n, text)
		mid := p.event()["message_id"].(string)
		p.react("tel", mid, "👀", false)
		p.reply("tel", mid, fmt.Sprint("done ", n))
		p.end("tel", mid)
		r.pass(lingerMark + 100*time.Millisecond)
		if d := r.h.dones("tel"); len(d) != int(n) {
			t.Fatalf("the ends are %+v", d)
		}
	}
	turn(1, "hi")
	turn(2, "hi again")
	r.say("tel", 3, "/new")
	p.nothing()
	r.rest()
	if ev := p.event(); ev["text"] != "/new" {
		t.Errorf("the event is %v", ev)
	}
}

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
