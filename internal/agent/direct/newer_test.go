package direct

import (
	"testing"

	"hermes-mobile/internal/agent"
)

// Tasks of subagents are steps of the turn, told apart by their IDs. A task without an ID or
// without an end does no harm.
func TestDelegations(t *testing.T) {
	g, d := newGateway(t, now), newDisk()
	l := begin(t, g.URL, d)
	ok(t, receive(t, l.hand(message(1, "hi")), "taken"))
	run := g.run(1)
	run.emit("subagent.start", object{"delegation_id": "d1", "text": "first"})
	run.emit("subagent.start", object{"delegation_id": "d2", "text": "second"})
	run.emit("subagent.start", object{"delegation_id": "d2", "text": "again"})
	run.emit("subagent.complete", object{"delegation_id": "d2", "text": "found"})
	run.emit("subagent.start", object{"text": "without an id"})
	run.emit("subagent.complete", object{"delegation_id": "d2"})
	run.emit("subagent.complete", object{"delegation_id": "d1"})
	run.text("pie")
	run.complete("pie")
	if done := l.done(1); done.Interrupted {
		t.Error("the turn was interrupted")
	}
	l.eventually("the end of each task", func(events []agent.Event) bool {
		ends := map[string]int{}
		for _, e := range events {
			if s, is := e.(agent.ToolStep); is && s.Name == subagent && s.State == "done" {
				ends[s.Title]++
			}
		}
		return len(ends) == 3 && ends["first"] == 1 && ends["second"] == 1 && ends["without an id"] == 1
	})
}

// Results of background work are stored in the session without a turn. They are there when the
// session is opened again, and an older gateway gets them in the history of the next turn.
func TestBackgroundResults(t *testing.T) {
	each(t, func(t *testing.T, v string) {
		g, d := newGateway(t, v), newDisk()
		l := begin(t, g.URL, d)
		ok(t, receive(t, l.hand(message(1, "look it up, and tell me later")), "taken"))
		run := g.run(1)
		run.complete("I will.")
		l.done(1)
		type page struct {
			Messages []struct{ Role, Text string }
		}
		before := as[page](t, call(t, l, "sessions.history", `{}`))
		g.mu.Lock()
		session := g.order[0]
		g.store(session, "assistant", "Here is what I found.", nil)
		g.moved()
		g.mu.Unlock()
		call(t, l, "sessions.open", `{"id":"`+session+`"}`)
		after := as[page](t, call(t, l, "sessions.history", `{}`))
		if len(after.Messages) != len(before.Messages)+1 || after.Messages[len(after.Messages)-1].Text != "Here is what I found." {
			t.Errorf("the history was %+v, and is %+v", before, after)
		}
	})
}
