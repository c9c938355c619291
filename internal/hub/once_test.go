package hub_test

import (
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

// What is stored together with a connection that begins is sent to it once.
func TestSentOnceToANewConnection(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withName("old"))
	release := w.holdDisk()
	w.hub.Post("d", nil, agent.Say{ID: "s1", Text: "first", Final: true})
	until(t, "the disk to be waited for", func() bool { return w.hub.Waiting("d") == 0 })
	next := w.open("d", withName("new")) // which is stored
	until(t, "hello to wait", func() bool { return w.hub.Waiting("d") == 1 })
	w.hub.Post("d", nil, agent.Say{ID: "s2", Text: "second", Final: true})
	release()
	c.closed()
	expect[*frame.Ready](next)
	seen := map[int64]int{}
	for _, f := range next.sync() {
		if m, is := f.(*frame.Message); is {
			if seen[m.Seq]++; seen[m.Seq] > 1 {
				t.Errorf("sent twice: %s", show(m))
			}
		}
	}
	if len(seen) == 0 {
		t.Error("nothing came")
	}
}
