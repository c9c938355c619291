package relay

import (
	"testing"
	"time"
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
