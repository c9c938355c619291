package relay

import (
	"fmt"
	"testing"
	"time"
)

// rest lets time go by until no command waits for the gateway's rest any more.
func (r *rig) rest() {
	r.t.Helper()
	for range 20 {
		r.pass(restSession)
		parked := false
		for _, g := range r.a.routes.Load().list {
			g.seq.do(func() {
				for c := range g.conversations.active {
					parked = parked || c.inputs.parked != nil
				}
			})
		}
		if !parked {
			return
		}
	}
	r.t.Fatalf("a command waits still\n%s", r.dump())
}

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

// A gateway whose event loop stood still since the end of a turn holds the session still, whatever the clock says. A command
// waits until the loop has turned some rounds, but no longer than it could make the gateway deaf.
func TestCommandWaitsForTheEventLoop(t *testing.T) {
	for name, version := range map[string]Version{"older": Older, "newer": Newer} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": version} })
			p := r.dial()
			turn := func(n int64) {
				mid := p.turn("tel", n, "hello")
				if version == Newer {
					p.react("tel", mid, "👀", false)
				}
				p.reply("tel", mid, "done")
				p.still.Store(true)
				if version == Newer {
					p.end("tel", mid)
				}
				r.pass(restSession + time.Second)
			}
			turn(1)
			r.say("tel", 2, "/new")
			r.pass(10 * time.Second)
			p.nothing()
			before := p.pings.Load()
			p.still.Store(false)
			r.pass(pingAgain + 100*time.Millisecond)
			r.until("the event loop turns again", func() bool { return p.pings.Load()-before >= restPongs })
			p.nothing() // the time while it stood was no rest
			r.rest()
			if ev := p.event(); ev["text"] != "/new" {
				t.Fatalf("came %v", ev)
			}
			if n := p.pings.Load() - before; n < restPongs {
				t.Errorf("the command came after %d pings", n)
			}
		})
	}
}

// Where the gateway adds what comes to the turn that runs, a text after a turn waits until the gateway's loop has turned some rounds: it
// would be added to the turn that is over. It does not wait for long.
func TestTextWaitsWhereItCouldBeAdded(t *testing.T) {
	for name, comesBack := range map[string]bool{"the loop turns again": true, "it stands still": false} {
		t.Run(name, func(t *testing.T) {
			r, p := steering(t, Newer)
			mid := p.turn("tel", 1, "hello")
			p.react("tel", mid, "👀", false)
			p.reply("tel", mid, "done")
			p.still.Store(true)
			p.end("tel", mid)
			r.pass(lingerMark + 200*time.Millisecond)
			r.say("tel", 2, "and now?")
			r.pass(time.Second)
			p.nothing()
			if comesBack {
				before := p.pings.Load()
				p.still.Store(false)
				r.pass(pingAgain + 100*time.Millisecond)
				r.until("the event loop turns again", func() bool { return p.pings.Load()-before >= restPongs })
			} else {
				r.pass(settleMax)
			}
			for range 10 { // the last pong may be on its way
				r.pass(100 * time.Millisecond)
			}
			if ev := p.event(); ev["text"] != "and now?" {
				t.Errorf("came %v", ev)
			}
		})
	}
}
