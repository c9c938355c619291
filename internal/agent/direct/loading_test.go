package direct

import (
	"strings"
	"testing"
)

// loading ends the run like 0.22 while its modules are half loaded: it stores nothing.
func (run *fakeRun) loading() {
	run.g.mu.Lock()
	kept := run.g.sessions[run.session]
	run.g.sessions[run.session] = kept[:len(kept)-1]
	run.g.mu.Unlock()
	run.end("failed", object{"error": "cannot import name 'AIAgent' from partially initialized module 'run_agent' (most likely due to a circular import) (/opt/hermes/run_agent.py)"})
}

// A gateway that has just restarted can fail at a turn because it is still loading. The turn starts
// again as another run, and the user sees only the reply.
func TestGatewayIsLoading(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	g.run(1).loading()
	g.run(2).loading()
	g.run(3).complete("here I am")
	if e := l.done(1); e.Interrupted {
		t.Error("it ended as interrupted")
	}
	wantFinals(t, d, 1, "here I am")
	if len(g.keys) != 3 {
		t.Errorf("the runs were asked for with %d keys", len(g.keys))
	}
	ok(t, receive(t, l.hand(message(2, "more")), "taken"))
	g.run(4).complete("fine")
	l.done(2)
	wantFinals(t, d, 2, "fine")
}

// The server stops at that moment: after the restart the turn starts once.
func TestGatewayIsLoadingAsTheServerStops(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	in := message(1, "hi")
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(in), "taken"))
	g.run(1).loading()
	l.kill()
	l = begin(t, g.URL, d)
	ok(t, receive(t, l.hand(d.handed(in)), "taken"))
	g.run(2).complete("here I am")
	l.done(1)
	wantFinals(t, d, 1, "here I am")
	if len(g.runs) != 2 {
		t.Errorf("%d runs were begun", len(g.runs))
	}
}

// A gateway that never finishes loading fails in the end. The same failure after some output is
// final at once.
func TestGatewayNeverLoads(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	for n := range maxTries + 1 {
		g.run(n + 1).loading()
	}
	l.done(1)
	if got := d.finals(1); len(got) != 1 || !strings.HasPrefix(got[0], "The turn failed: cannot import name") {
		t.Errorf("it said %q", got)
	}
	ok(t, receive(t, l.hand(message(2, "more")), "taken"))
	run := g.run(maxTries + 2)
	run.text("Let me look.")
	l.steps("Let me look.")
	run.loading()
	l.done(2)
	if got := d.finals(2); len(got) != 2 || got[0] != "Let me look." || !strings.HasPrefix(got[1], "The turn failed: cannot import name") {
		t.Errorf("it said %q", got)
	}
}
