package hub_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

func approvalCard(id string, n int64) agent.Card {
	return agent.Card{ID: id, N: n, Kind: frame.ExecApproval, Text: "may I?", Command: "rm", State: []byte("of " + id),
		Options: []agent.Option{{ID: "once", Label: "Once", Style: "primary"}, {ID: "deny", Label: "Deny", Style: "danger"}}}
}

// A decision is told until the agent has taken it: again when it comes back, again after a restart,
// and then no more.
func TestDecisionIsToldUntilTaken(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	w.agent.online(false)
	expect[*frame.CapabilitiesChanged](c)
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	expect[*frame.PromptDone](c)
	expect[*frame.Accepted](c)
	c.sync()
	w.idle() // decided, and not told to an agent that is away
	w.agent.online(true)
	told := func() answered {
		t.Helper()
		a := w.told()
		if a.answer != (agent.Answer{OptionID: "once"}) || a.card.ID != "c1" || string(a.card.State) != "of c1" {
			t.Fatalf("told %+v of %+v", a.answer, a.card)
		}
		return a
	}
	told().taken(errors.New("not now"))
	w.restart() // the outcome may be lost with the server
	told()      // and never answered
	w.restart()
	a := told()
	w.agent.host.Changed() // while it is being told it is not told twice
	w.connect("d").sync()
	w.idle()
	a.taken(nil)
	until(t, "the card to be settled", func() bool { _, n := w.unsettled(t); return n == 0 })
	w.restart()
	w.connect("d").sync()
	w.idle()
}

// unsettled returns how many cards of device 1 the store holds that are open, and that are not
// settled.
func (w *world) unsettled(t tb) (open, all int) {
	t.Helper()
	cards, err := w.store.Cards(ctx, 1)
	ok(t, err)
	for _, c := range cards {
		if c.State == 0 {
			open++
		}
	}
	return open, len(cards)
}

// The effect of a decision settles its card in the same transaction: a crash in between makes
// neither happen twice.
func TestSettlesWithTheEffect(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	expect[*frame.PromptDone](c)
	w.told()               // and it dies before it says that it took it
	w.failWrites("outbox") // the effect cannot be stored
	say := agent.Say{ID: "s1", Text: "done", Final: true, Settles: "c1"}
	if err := w.try("d", say); err == nil {
		t.Fatal("stored in spite of the failing store")
	}
	if _, n := w.unsettled(t); n != 1 {
		t.Error("the card is settled without its effect")
	}
	w.healWrites("outbox")
	w.post("d", say)
	if _, n := w.unsettled(t); n != 0 {
		t.Error("the effect is stored and the card is not settled")
	}
	w = w.crash()
	w.connect("d", withResume("x", 0)).sync()
	w.idle()
}

// Two devices of one user, one card: the answer of the other is refused; racing answers and an
// expiry have one winner.
func TestOneAnswerCounts(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.PromptLife = 30 * time.Millisecond })
	c, other := w.connect("d"), w.connect("e")
	for range 20 {
		card := approvalCard(agent.NewID(), 0)
		w.post("d", agent.Ask{Card: card})
		expect[*frame.Prompt](c)
		other.send(&frame.Answer{PromptID: card.ID, OptionID: "once"})
		if e := expect[*frame.Error](other); e.Code != frame.Forbidden || e.Ref != card.ID {
			t.Fatalf("another device's answer gets %s", show(e))
		}
		var wg sync.WaitGroup
		wg.Go(func() { c.send(&frame.Answer{PromptID: card.ID, OptionID: "once"}) })
		wg.Go(func() { c.send(&frame.Answer{PromptID: card.ID, OptionID: "deny"}) })
		wg.Wait()
		var done []*frame.PromptDone
		for len(done) < 2 {
			done = append(done, expect[*frame.PromptDone](c))
		}
		for _, f := range c.sync() { // where the expiry won both answers are late
			if d, is := f.(*frame.PromptDone); is {
				done = append(done, d)
			}
		}
		for _, d := range done {
			if d.OptionID != done[0].OptionID || d.Expired != done[0].Expired {
				t.Fatalf("two outcomes: %s and %s", show(done[0]), show(d))
			}
		}
		a := w.told()
		if a.answer.OptionID != done[0].OptionID || a.answer.Expired != done[0].Expired {
			t.Fatalf("the agent was told %+v, the device %s", a.answer, show(done[0]))
		}
		a.taken(nil)
	}
	c.sync()
	w.idle()
}

// An expired card: the agent gets the safe value, also where the card expired while the server was
// down.
func TestCardExpires(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	short := approvalCard("c1", 0)
	short.Life = 20 * time.Millisecond
	w.post("d", agent.Ask{Card: short})
	expect[*frame.Prompt](c)
	if d := expect[*frame.PromptDone](c); !d.Expired || d.OptionID != "deny" {
		t.Errorf("device: %s", show(d))
	}
	a := w.told()
	if a.answer != (agent.Answer{OptionID: "deny", Expired: true}) {
		t.Errorf("agent: %+v", a.answer)
	}
	a.taken(nil)

	choice := agent.Card{ID: "c2", Kind: frame.Clarify, Life: 300 * time.Millisecond, Options: []agent.Option{{ID: "a"}}}
	asked := time.Now()
	w.post("d", agent.Ask{Card: choice})
	w.close()
	until(t, "the card's time to end", func() bool { return time.Since(asked) > choice.Life })
	w.start(newAgent())
	a = w.told()
	if a.answer != (agent.Answer{Expired: true}) || a.card.ID != "c2" {
		t.Errorf("after the restart: %+v", a.answer)
	}
	a.taken(nil)
	until(t, "the session to leave memory", func() bool { return w.hub.Sessions() == 0 })
}

// An open card is shown again after a reconnect with its own seq, once, also with the backlog, also
// after a restart.
func TestOpenCardIsShownAgain(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	epoch := c.Ready.Resume.Epoch
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	w.post("d", agent.Say{ID: "s1", Text: "later", Final: true})
	seq := expect[*frame.Prompt](c).Seq
	last := expect[*frame.Message](c).Seq
	again := func(c *client, want int) {
		t.Helper()
		n := 0
		for _, f := range c.sync() {
			if p, is := f.(*frame.Prompt); is {
				n++
				if p.ID != "c1" || p.Seq != seq || p.TimeoutSeconds < 200 || p.TimeoutSeconds > 300 || p.Session != "mobile:d" || len(p.Options) != 2 {
					t.Errorf("shown again: %s", show(p))
				}
			}
		}
		if n != want {
			t.Errorf("the card was shown %d times, want %d", n, want)
		}
	}
	again(w.connect("d", withResume(epoch, last)), 1) // after its seq
	again(w.connect("d", withResume(epoch, 0)), 1)    // the replay may bring it
	w.restart()
	again(w.connect("d", withResume(epoch, last)), 1)
	c = w.connect("d")
	again(c, 1)
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	expect[*frame.PromptDone](c)
	again(w.connect("d", withResume(epoch, last)), 0)
}
