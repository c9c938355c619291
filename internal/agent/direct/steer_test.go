package direct

import (
	"errors"
	"net/http"
	"slices"
	"testing"

	"hermes-mobile/internal/agent"
)

func toAdd(n, joins int64, text string) agent.Input {
	in := message(n, text)
	in.Steer, in.Joins = true, joins
	return in
}

// running starts turn 1 at a newer gateway.
func running(t *testing.T) (*fakeGateway, *disk, *life, *fakeRun) {
	t.Helper()
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	return g, d, l, g.run(1)
}

// A text is added to the run, whose reply answers it too. Without a run, or with a gateway that
// cannot steer, it is not admitted.
func TestSteer(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		in := toAdd(2, 1, "and milk")
		if l.agent.Admits(in) {
			t.Error("admitted without a turn")
		}
		ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
		run := g.run(1)
		if can := v == now; l.agent.Admits(in) != can || l.agent.Status(phone).Steer != can {
			t.Errorf("admitted %v, capability %v", l.agent.Admits(in), l.agent.Status(phone).Steer)
		}
		if v != now {
			return
		}
		if l.agent.Admits(toAdd(3, 9, "another turn")) || l.agent.Admits(message(3, "its own turn")) {
			t.Error("admitted what does not join this turn")
		}
		taken := l.hand(in)
		g.eventually("the text", func() bool { return len(run.steered) == 1 && run.steered[0] == "and milk" })
		run.complete("both")
		l.done(1)
		ok(t, receive(t, taken, "taken"))
		l.done(2)
		wantFinals(t, d, 1, "both")
		wantFinals(t, d, 2)
	})
}

// A text that the model did not read, that the gateway refused or that came too late gets a turn of
// its own.
func TestSteerUnread(t *testing.T) {
	g, _, l, run := running(t)
	read := l.hand(toAdd(2, 1, "read"))
	g.eventually("the text", func() bool { return len(run.steered) == 1 })
	unread := l.hand(toAdd(3, 1, "not read"))
	g.eventually("the texts", func() bool { return len(run.steered) == 2 })
	run.end("completed", object{"output": "done", "completed": true, "pending_steer": "not read"})
	l.done(1)
	ok(t, receive(t, read, "taken"))
	if err := receive(t, unread, "the refusal"); !errors.Is(err, agent.ErrOwnTurn) {
		t.Errorf("it was told %v", err)
	}
	if err := receive(t, l.hand(toAdd(4, 1, "late")), "the refusal"); !errors.Is(err, agent.ErrOwnTurn) {
		t.Errorf("the late one was told %v", err)
	}

	g, _, l, run = running(t)
	g.mu.Lock()
	run.deaf = true
	g.mu.Unlock()
	refused := l.hand(toAdd(2, 1, "deaf"))
	run.complete("done")
	l.done(1)
	if err := receive(t, refused, "the refusal"); !errors.Is(err, agent.ErrOwnTurn) {
		t.Errorf("it was told %v", err)
	}
}

// While the run waits for an approval it accepts no text; then it does.
func TestSteerWhileAsked(t *testing.T) {
	g, _, l, run := running(t)
	run.ask("a1", "rm x")
	card := l.asks(1)[0]
	taken := l.hand(toAdd(2, 1, "and milk"))
	g.eventually("the try", func() bool { return slices.Contains(g.asked, "POST /v1/runs/"+run.id+"/steer") })
	ok(t, l.answer(card, agent.Answer{OptionID: "once"}))
	g.eventually("the text", func() bool { return len(run.steered) == 1 })
	run.complete("done")
	l.done(2)
	ok(t, receive(t, taken, "taken"))
}

// If the response to the call is lost, the text is not sent again, and the user is told.
func TestSteerInDoubt(t *testing.T) {
	g, d, l, run := running(t)
	g.next(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/runs/"+run.id+"/steer" {
			return false
		}
		panic(http.ErrAbortHandler)
	})
	ok(t, receive(t, l.hand(toAdd(2, 1, "and milk")), "taken"))
	l.done(2)
	wantFinals(t, d, 2, addInDoubt)
	if len(run.steered) != 0 {
		t.Errorf("it was sent again: %q", run.steered)
	}
	run.complete("done")
	l.done(1)
	wantFinals(t, d, 1, "done")
}

// After a crash an addition does not run as a turn of its own.
func TestSteerAfterACrash(t *testing.T) {
	g, d, l, run := running(t)
	taken := l.hand(toAdd(2, 1, "and milk"))
	g.eventually("the text", func() bool { return len(run.steered) == 1 })
	l.kill()
	_ = taken
	run.complete("both")
	l = begin(t, g.URL, d)
	ok(t, receive(t, l.hand(d.handed(message(1, "hi"))), "taken"))
	l.done(1)
	in := d.handed(message(2, "and milk"))
	in.Steer = true
	ok(t, receive(t, l.hand(in), "taken"))
	l.done(2)
	if len(g.runs) != 1 {
		t.Errorf("%d runs were begun", len(g.runs))
	}
}

func TestUnread(t *testing.T) {
	list := []*addition{{in: message(1, "read")}, {in: message(2, " two\nlines ")}, {in: message(3, "not read")}}
	for pending, want := range map[string]int{
		"": 0, " \n": 0, "not read": 1, "two\nlines\nnot read": 2, "read\ntwo\nlines\nnot read": 3, "of another form": 1,
	} {
		if got := unread(list, pending); got != want {
			t.Errorf("of %q %d were not read, want %d", pending, got, want)
		}
	}
}
