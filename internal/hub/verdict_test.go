package hub_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// decideElsewhere makes the store hold a decision that the session knows nothing of, as where
// another process had written it.
func (w *world) decideElsewhere(id, option, by string) {
	w.t.Helper()
	w.sql(fmt.Sprintf("UPDATE card SET state=1, option_id='%s', decided_by='%s' WHERE id='%s' AND state=0", option, by, id))
}

// The update of the store is the decision. A session that would decide otherwise tells its devices
// and the agent what the store says.
func TestTheStoreDecides(t *testing.T) {
	for name, meet := range map[string]func(w *world, c *client){
		"an answer": func(w *world, c *client) {
			c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
			find(c, func(a *frame.Accepted) bool { return a.ID == "a1" })
		},
		"an answer without id": func(w *world, c *client) { c.send(&frame.Answer{PromptID: "c1", OptionID: "once"}) },
		"the agent closes it": func(w *world, c *client) {
			w.post("d", agent.CloseCard{ID: "c1", OptionID: "once"}, agent.Say{ID: "s1", Text: "and goes on", Final: true})
			find(c, func(m *frame.Message) bool { return m.Text == "and goes on" })
		},
		"the end of its time": nil,
	} {
		for _, restarted := range []bool{false, true} {
			if restarted && meet == nil {
				continue // its time could end before it is decided elsewhere
			}
			t.Run(fmt.Sprint(name, ", after a restart: ", restarted), func(t *testing.T) {
				t.Parallel()
				card := approvalCard("c1", 0)
				card.Life = time.Hour
				if meet == nil {
					card.Life = 2 * time.Second
				}
				var w *world
				var c *client
				for late := true; late; card.Life *= 2 { // on a slow machine the card may expire before it is decided
					w = newWorld(t, nil)
					c = w.connect("d")
					w.post("d", agent.Ask{Card: card})
					expect[*frame.Prompt](c)
					if restarted {
						w.restart()
						c = w.connect("d")
					}
					w.decideElsewhere("c1", "deny", "")
					w.query("SELECT expired FROM card WHERE id='c1'", &late)
				}
				if meet != nil {
					meet(w, c)
				} else {
					find(c, func(d *frame.PromptDone) bool {
						if d.OptionID != "deny" || d.Expired {
							t.Errorf("the device was told %s", show(d))
						}
						return true
					})
				}
				a := w.told()
				if a.answer != (agent.Answer{OptionID: "deny"}) || a.card.ID != "c1" {
					t.Fatalf("the agent was told %+v", a.answer)
				}
				a.taken(nil)
				until(t, "the card to be settled", func() bool { _, n := w.unsettled(t); return n == 0 })
				for _, f := range c.sync() {
					if d, is := f.(*frame.PromptDone); is && d.OptionID != "deny" {
						t.Errorf("the device was told %s", show(d))
					}
				}
				c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
				if d := expect[*frame.PromptDone](c); d.OptionID != "deny" || d.Expired {
					t.Errorf("a later answer is told %s", show(d))
				}
				w.restart()
				w.connect("d").sync()
				w.idle()
			})
		}
	}
}

// All devices of a conversation answer at once, with another writer in between: the agent gets one
// answer, and everybody learns which and whose.
func TestOneOfManyAnswersIsTheDecision(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	for i := range 30 {
		card := approvalCard(agent.NewID(), 0)
		w.post("phone", agent.Ask{Card: card})
		find(phone, func(p *frame.Prompt) bool { return p.ID == card.ID })
		find(tablet, func(p *frame.Prompt) bool { return p.ID == card.ID })
		var all sync.WaitGroup
		for n, c := range []*client{phone, tablet} {
			all.Go(func() {
				for k := range 3 {
					c.send(&frame.Answer{ID: fmt.Sprint("a", i, n, k), PromptID: card.ID, OptionID: []string{"once", "deny"}[(n+k)%2]})
				}
			})
		}
		if i%2 == 0 {
			all.Go(func() { w.decideElsewhere(card.ID, "deny", "another") })
		}
		all.Wait()
		a := w.told()
		row, found, err := w.store.Card(ctx, card.ID)
		ok(t, err)
		if !found || a.answer != (agent.Answer{OptionID: row.OptionID}) || a.card.ID != card.ID {
			t.Fatalf("the agent was told %+v, the store has %+v", a.answer, row)
		}
		a.taken(nil)
		for _, c := range []*client{phone, tablet} {
			n := 0
			for _, f := range append(c.sync(), c.sync()...) {
				d, is := f.(*frame.PromptDone)
				if !is || d.PromptID != card.ID {
					continue
				}
				n++
				if d.OptionID != row.OptionID || d.Expired || d.By == nil || d.By.ID != row.By {
					t.Fatalf("told %s, the store has %+v", show(d), row)
				}
			}
			if n == 0 {
				t.Fatalf("%s was not told", c.id)
			}
		}
		w.idle()
	}
}

// The button of a notification is told the decision, too.
func TestPushActionIsToldTheDecision(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	w.away("d", map[string]any{"content": true})
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	w.decideElsewhere("c1", "deny", "")
	if got, err := w.hub.Act(ctx, w.hub.ActionToken("d", "c1", "once")); err != nil || got != (hub.ActionOutcome{OptionID: "deny", Before: true}) {
		t.Errorf("%+v %v", got, err)
	}
	if a := w.told(); a.answer != (agent.Answer{OptionID: "deny"}) {
		t.Errorf("the agent was told %+v", a.answer)
	}
}

// An answer to a card that the store no longer has decides nothing.
func TestACardThatIsGone(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	w.sql("DELETE FROM card WHERE id='c1'")
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	if d := expect[*frame.PromptDone](c); !d.Expired {
		t.Errorf("a card that is gone: %s", show(d))
	}
	c.sync()
	w.idle()
}
