package hub_test

import (
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

func shortIdleTimeout(d time.Duration) func(*hub.Options) {
	return func(o *hub.Options) { o.IdleTimeout = d }
}

// An agent that takes a message and is never heard of again: the turn ends, what was begun gets its end, the indicator
// goes off, and the next message has its turn.
func TestIdleTimeoutEndsASilentTurn(t *testing.T) {
	const timeout = 150 * time.Millisecond
	w := newWorld(t, shortIdleTimeout(timeout))
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	var last time.Time
	for _, text := range []string{"a", "a b", "a b c"} { // signs of life: the timeout runs from the last
		until(t, "some of the timeout to pass", func() bool { return last.IsZero() || time.Since(last) > timeout/2 })
		last = time.Now()
		w.post("d", agent.Say{ID: "s1", Text: text, N: h.N, ReplyTo: h.ID})
	}
	m := find(c, func(m *frame.Message) bool { return m.Final })
	if early := time.Since(last); early < timeout {
		t.Errorf("the turn was ended after %v, the timeout is %v", early, timeout)
	}
	if m.ID != "s1" || m.Text != "a b c" || !m.Interrupted || m.ReplyTo != "m1" || m.Seq == 0 {
		t.Errorf("the end of the message: %s", show(m))
	}
	if y := find[*frame.Typing](c, nil); !y.Stop {
		t.Error("typing stays on")
	}
	if h := w.take(); h.Text != "two" || h.Handed {
		t.Errorf("handed %+v", h.Input)
	}
	w.post("d", agent.Done{N: h.N}) // the lost one comes back: too late to matter
	c.sync()
}

// Also an agent that never says whether it took the message.
func TestIdleTimeoutEndsAnUnackedInput(t *testing.T) {
	w := newWorld(t, shortIdleTimeout(50*time.Millisecond))
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	w.next()
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
}

// A person may take the card's time to answer; the timeout waits for that.
func TestIdleTimeoutWaitsForOpenCards(t *testing.T) {
	const timeout = 50 * time.Millisecond
	w := newWorld(t, shortIdleTimeout(timeout))
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	w.post("d", agent.Ask{Card: approvalCard("c1", h.N)})
	asked := time.Now()
	until(t, "several timeouts to pass", func() bool { return time.Since(asked) > 6*timeout })
	c.sync()
	w.idle()
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	a := w.told()
	w.post("d", agent.Say{ID: "s1", Text: "approval: once", Final: true, N: h.N, Settles: "c1"}, agent.Done{N: h.N})
	a.taken(nil)
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
}

// Once the card is answered the agent is alone again, and the timeout counts: not the hour that the card could have lived.
func TestIdleTimeoutCountsAfterTheAnswer(t *testing.T) {
	const timeout = 50 * time.Millisecond
	w := newWorld(t, shortIdleTimeout(timeout))
	c := w.connect("d")
	c.text("m1", "one")
	c.text("m2", "two")
	h := w.take()
	card := approvalCard("c1", h.N)
	card.Life = time.Hour
	w.post("d", agent.Ask{Card: card})
	asked := time.Now()
	until(t, "several timeouts to pass", func() bool { return time.Since(asked) > 4*timeout })
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	w.told().taken(nil) // and silence
	if h := w.take(); h.Text != "two" {
		t.Errorf("handed %q", h.Text)
	}
}

// A message in the middle of another's turn has no timeout of its own, and is not in the way of what follows.
func TestIdleTimeoutAndOutOfBand(t *testing.T) {
	w := newWorld(t, shortIdleTimeout(80*time.Millisecond))
	w.agent.admits = func(in agent.Input) bool { return in.Text == "/x" }
	c := w.connect("d")
	c.text("m1", "one")
	w.take()
	c.text("m2", "/x")
	w.take() // and silence about both
	c.text("m3", "three")
	if h := w.take(); h.Text != "three" {
		t.Errorf("handed %q", h.Text)
	}
}
