package hub_test

import (
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

// withTail asks for finals that only add, too.
func withTail() option {
	return func(d *dialing) {
		d.hello.Accept = append(d.hello.Accept, frame.AcceptDelta, frame.AcceptTail, frame.AcceptTool)
	}
}

// step has a message grow and waits until the device was shown it.
func (w *world) step(device, id, text string, watch ...*client) {
	w.t.Helper()
	w.post(device, agent.Say{ID: id, Text: text})
	for _, c := range watch {
		find(c, func(m *frame.Message) bool { return m.ID == id && !m.Final })
	}
}

// adds checks that a final is an addition at a place.
func adds(t *testing.T, m *frame.Message, at int, text string) {
	t.Helper()
	if m.Append == nil || *m.Append != text || m.At != at || m.Text != "" || m.Edit || !m.Final || m.Seq == 0 {
		t.Errorf("final %s, want %q at %d", show(m), text, at)
	}
}

// isWhole checks that a final is all of a message.
func isWhole(t *testing.T, m *frame.Message, text string) {
	t.Helper()
	if m.Append != nil || m.Text != text || !m.Edit || m.Chunk.Total != 1 || !m.Final || m.Seq == 0 {
		t.Errorf("final %s, want all of %q", show(m), text)
	}
}

// What was shown need not come again: the final adds what is missing, or nothing.
func TestFinalAdds(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withTail())
	for name, texts := range map[string][2]string{"more": {"😀 one", " two"}, "nothing": {"all of it", ""}} {
		w.step("d", name, texts[0], c)
		w.post("d", agent.Say{ID: name, Text: texts[0] + texts[1], Final: true, ReplyTo: "m1"})
		m := c.message()
		adds(t, m, map[string]int{"more": 6, "nothing": 9}[name], texts[1])
		if m.ReplyTo != "m1" || m.Interrupted {
			t.Errorf("final %s", show(m))
		}
	}
	c.text("m1", "go")
	h := w.take()
	w.post("d", agent.Say{ID: "cut", Text: "so far", N: h.N})
	find(c, func(m *frame.Message) bool { return m.ID == "cut" })
	w.post("d", agent.Done{N: h.N, Interrupted: true})
	m := find(c, func(m *frame.Message) bool { return m.Final })
	if adds(t, m, 6, ""); !m.Interrupted {
		t.Errorf("final %s", show(m))
	}
}

// Steps of a client that asked for it leave out what goes without saying; those of any other keep
// it.
func TestShortSteps(t *testing.T) {
	for name, want := range map[string]struct {
		ask  option
		at   int
		edit bool
	}{"tail": {withTail(), 0, false}, "delta": {withDelta(), 3, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			c := w.connect("d", want.ask)
			w.step("d", "s1", "one", c)
			w.post("d", agent.Say{ID: "s1", Text: "one two"})
			m := find(c, func(m *frame.Message) bool { return m.Append != nil })
			if *m.Append != " two" || m.At != want.at || m.Edit != want.edit || m.Final {
				t.Errorf("step %s", show(m))
			}
		})
	}
}

// Whatever the device is not known to show at this moment comes whole.
func TestFinalIsWhole(t *testing.T) {
	steps := func(t *testing.T, opts ...option) (*world, *client) {
		w := newWorld(t, nil)
		c := w.connect("d", opts...)
		w.step("d", "s1", "one", c)
		return w, c
	}
	final := agent.Say{ID: "s1", Text: "one two", Final: true}
	t.Run("not asked for", func(t *testing.T) {
		for _, accept := range [][]string{nil, {frame.AcceptDelta}, {frame.AcceptTail}} {
			w, c := steps(t, func(d *dialing) { d.hello.Accept = accept })
			w.post("d", final)
			isWhole(t, c.message(), "one two")
		}
	})
	t.Run("other words", func(t *testing.T) {
		for _, text := range []string{"won two", "on", ""} {
			w, c := steps(t, withTail())
			w.post("d", agent.Say{ID: "s1", Text: text, Final: true})
			isWhole(t, c.message(), text)
		}
	})
	t.Run("never streamed", func(t *testing.T) {
		w := newWorld(t, nil)
		c := w.connect("d", withTail())
		w.post("d", agent.Say{ID: "s1", Text: "one", Final: true})
		if m := c.message(); m.Append != nil || m.Text != "one" || m.Edit {
			t.Errorf("final %s", show(m))
		}
	})
	t.Run("ended while away", func(t *testing.T) {
		w, c := steps(t, withTail())
		c.drop()
		until(t, "the device to be gone", func() bool { return !w.live("d") })
		w.post("d", final)
		isWhole(t, w.connect("d", withTail()).message(), "one two")
	})
	t.Run("sent again", func(t *testing.T) {
		w, c := steps(t, withTail())
		w.post("d", final)
		m := c.message()
		adds(t, m, 3, " two")
		c.drop() // before the ack
		again := w.connect("d", withTail(), withResume(c.Ready.Resume.Epoch, m.Seq-1)).message()
		if isWhole(t, again, "one two"); again.Seq != m.Seq {
			t.Errorf("sent again as %s", show(again))
		}
	})
	t.Run("another connection", func(t *testing.T) {
		w, c := steps(t, withTail())
		next := w.connect("d", withTail())
		c.closed()
		find(next, func(m *frame.Message) bool { return m.Append == nil && m.Text == "one" }) // what was shown is the older one's
		w.post("d", final)
		adds(t, next.message(), 3, " two")
	})
	t.Run("behind the backlog", func(t *testing.T) {
		w := newWorld(t, nil)
		c := w.open("d", slow(), withTail())
		until(t, "the device to be connected", func() bool { return w.live("d") })
		w.post("d", agent.Say{ID: "s1", Text: "one"})
		for range 16 {
			w.post("d", agent.Say{ID: agent.NewID(), Text: strings.Repeat("x", 256<<10), Final: true})
		}
		w.post("d", final)
		c.startReading()
		isWhole(t, find(c, func(m *frame.Message) bool { return m.ID == "s1" && m.Final }), "one two")
	})
}

// Each device of a shared conversation gets the final in its own way, whoever asked for what.
func TestSharedFinalAdds(t *testing.T) {
	w := newWorld(t, nil)
	_, tablet := w.share()
	tablet.drop()
	tablet = w.tablet(withTail())
	phone := w.connect("phone", withUser("anna"), withName("Phone"))
	w.step("phone", "s1", "one", phone, tablet)
	w.post("phone", agent.Say{ID: "s1", Text: "one two", Final: true})
	isWhole(t, phone.message(), "one two")
	adds(t, tablet.message(), 3, " two")

	phone = w.connect("phone", withUser("anna"), withName("Phone"), withTail())
	w.step("phone", "s2", "one", phone, tablet)
	tablet.drop()
	w.post("phone", agent.Say{ID: "s2", Text: "one two", Final: true})
	adds(t, phone.message(), 3, " two")
	tablet = w.tablet(withTail())
	isWhole(t, find(tablet, func(m *frame.Message) bool { return m.ID == "s2" && m.Final }), "one two")
}

// Where the end of a message cannot be stored it still has the place at which the next one goes on.
func TestFinalAddsAfterTheStoreFailed(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withTail())
	w.step("d", "s1", "one", c)
	w.failWrites("outbox")
	if err := w.try("d", agent.Say{ID: "s1", Text: "one two", Final: true}); err == nil {
		t.Fatal("it was stored")
	}
	w.healWrites("outbox")
	w.post("d", agent.Say{ID: "s1", Text: "one two three", Final: true})
	adds(t, c.message(), 3, " two three")
}
