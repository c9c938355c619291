package direct

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

// play is a run that streams text, asks for an approval, uses a tool and streams more. It waits
// only for the user.
func play(run *fakeRun) {
	run.text("Let me ", "look.")
	run.tool("Let me look.", "terminal")
	run.ask("a1", "rm -rf x")
	run.g.eventually("the answer", func() bool { return len(run.approvals) == 0 || run.gaveUp })
	run.toolDone("terminal", false)
	run.text("Do", "ne.")
	run.complete("Done.")
}

// answerAll answers the cards of a process as a user does, until its turn or the process ends.
func (l *life) answerAll(n int64) (ended bool) {
	answered := map[string]bool{}
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		events, news := l.live, l.news
		l.mu.Unlock()
		if seen(events, func(d agent.Done) bool { return d.N == n }) {
			return true
		}
		l.disk.mu.Lock()
		open := make([]agent.Card, 0, 1)
		for id, c := range l.disk.cards {
			if !answered[id] {
				answered[id] = true
				open = append(open, c)
			}
		}
		l.disk.mu.Unlock()
		for _, c := range open {
			l.agent.Answer(c, agent.Answer{OptionID: "once"}, func(err error) {
				l.disk.mu.Lock()
				defer l.disk.mu.Unlock()
				if err == nil {
					delete(l.disk.cards, c.ID)
				} else {
					delete(answered, c.ID) // the hub sends it again
				}
			})
		}
		select {
		case <-news:
		case <-time.After(5 * time.Millisecond):
		case <-l.over:
			return false
		case <-deadline:
			l.t.Fatalf("the turn does not end; there came %+v", events)
		}
	}
}

// TestCrash ends the server at each step of a turn, before and after it. Steps are everything that
// is stored, and the calls that start a run. After the restart nothing is doubled or lost, and the
// turn was started once.
func TestCrash(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint("late ", late), func(t *testing.T) {
				t.Parallel()
				for step := 1; crashAt(t, v, step, late) || step < 8; step++ {
				}
			})
		}
	})
}

// crashAt reports whether the turn has that step.
func crashAt(t *testing.T, v string, step int, late bool) (crashed bool) {
	t.Helper()
	g, d := newGateway(t, v), newDisk()
	in := message(1, "hi")
	l := begin(t, g.URL, d)
	l.crash, l.late = step, late
	g.next(func(w http.ResponseWriter, r *http.Request) bool { // the call that starts the run is a step too
		if r.Method+r.URL.Path != "POST/v1/runs" || l.isDead() {
			return false
		}
		if !l.moment(func() { g.createRun(w, r) }) {
			panic(http.ErrAbortHandler)
		}
		return true
	})
	played := make(chan struct{})
	go func() {
		defer close(played)
		play(g.run(1))
	}()
	taken := l.hand(in)
	l.answerAll(1)
	crashed = l.isDead()
	if crashed {
		<-l.over
		if d.ends(1) == 0 { // otherwise the hub submits nothing again
			select {
			case err := <-taken:
				if err == nil {
					in = d.handed(in)
				}
			default:
				in = d.handed(in) // the agent may have taken it
			}
			if !strings.Contains(string(d.values[phone]), `"run":"run_1"`) && v == older && len(g.runs) > 0 {
				// The run's ID is unknown, so no one can answer it: the gateway gives up after a
				// minute.
				g.mu.Lock()
				g.runs[0].gaveUp = true
				g.moved()
				g.mu.Unlock()
			}
			l2 := begin(t, g.URL, d)
			_ = l2.hand(in)
			if !l2.answerAll(1) {
				t.Fatalf("step %d: the second life ended", step)
			}
			l2.kill()
		}
	} else {
		l.kill()
	}
	receive(t, played, "the run to be played")
	what := fmt.Sprintf("%s, step %d, late %v", v, step, late)
	if n := len(g.runs); n != 1 {
		t.Errorf("%s: %d runs", what, n)
	}
	if got := d.finals(1); !slices.Equal(got, []string{"Let me look.", "Done."}) || d.ends(1) != 1 {
		t.Errorf("%s: it said %q and ended %d times", what, got, d.ends(1))
	}
	asked := 0
	for _, e := range d.events {
		if _, is := e.(agent.Ask); is {
			asked++
		}
	}
	if asked == 0 && !g.runs[0].gaveUp || asked > 2 {
		t.Errorf("%s: it asked %d times", what, asked)
	}
	return crashed
}

// The stored state is lost: the key of 0.22 leads to the same run or to none, and 0.19 is not asked
// again.
func TestKeepIsWiped(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		in := message(1, "hi")
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(in), "taken"))
		run := g.run(1)
		run.text("half")
		l.steps("half")
		l.kill()
		d.values = map[string][]byte{}
		l = begin(t, g.URL, d)
		ok(t, receive(t, l.hand(d.handed(in)), "taken"))
		l.done(1)
		if got := d.finals(1); len(got) != 1 || !strings.Contains(got[0], "Check before you send it again") || len(g.runs) != 1 {
			t.Errorf("with %d runs it said %q", len(g.runs), got)
		}
		run.complete("x")
		ok(t, receive(t, l.hand(message(2, "next")), "taken"))
		g.run(2).complete("fine")
		l.done(2)
		wantFinals(t, d, 2, "fine")
	})
}

// The stored state is corrupt: the conversation starts anew.
func TestKeepIsDamaged(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	d.values[phone] = []byte(`{"session":7`)
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	g.run(1).complete("one")
	l.done(1)
	wantFinals(t, d, 1, "one")
}

// Nothing can be stored: the user is told, and no turn is started that a restart would forget.
func TestKeepFails(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		l.mu.Lock()
		l.keep = errors.New("disk full")
		l.mu.Unlock()
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		l.done(1)
		if got := d.finals(1); len(got) != 1 || !strings.Contains(got[0], "cannot be stored: disk full") || len(g.runs) != 0 {
			t.Errorf("with %d runs it said %q", len(g.runs), got)
		}
		l.mu.Lock()
		l.keep = nil
		l.mu.Unlock()
		ok(t, receive(t, l.hand(message(2, "hi")), "taken"))
		g.run(1).complete("two")
		l.done(2)
		wantFinals(t, d, 2, "two")
	})
}

// The model was changed between the crash and the restart: it is the same run all the same.
func TestModelIsChangedMeanwhile(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	in := message(1, "hi")
	l := begin(t, g.URL, d)
	arrived := make(chan struct{})
	g.next(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+r.URL.Path != "POST/v1/runs" {
			return false
		}
		g.createRun(w, r)
		close(arrived)
		<-r.Context().Done() // the response is lost
		return true
	})
	l.hand(in)
	receive(t, arrived, "the call")
	l.kill()
	l = begin(t, g.URL, d)
	call(t, l, "models.choose", `{"id":"m2"}`)
	ok(t, receive(t, l.hand(in), "taken"))
	g.run(1).complete("one")
	l.done(1)
	wantFinals(t, d, 1, "one")
	if len(g.runs) != 1 {
		t.Errorf("%d runs", len(g.runs))
	}

	// The quoted message is no longer known: another request with that key is no new run, and the
	// old one is looked up.
	in = message(2, "again")
	in.Quote = "something"
	arrived = make(chan struct{})
	g.next(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method+r.URL.Path != "POST/v1/runs" {
			return false
		}
		g.createRun(w, r)
		close(arrived)
		<-r.Context().Done()
		return true
	})
	l.hand(in)
	receive(t, arrived, "the call")
	l.kill()
	g.run(2).complete("two")
	l = begin(t, g.URL, d)
	in.Quote = ""
	ok(t, receive(t, l.hand(in), "taken"))
	l.done(2)
	wantFinals(t, d, 2, "two")
	if len(g.runs) != 2 {
		t.Errorf("%d runs", len(g.runs))
	}
}
