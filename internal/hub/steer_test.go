package hub_test

import (
	"sync/atomic"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

func (c *client) steer(id, text string) {
	c.w.t.Helper()
	c.send(&frame.Text{ID: id, Text: text, Steer: true})
	if a := expect[*frame.Accepted](c); a.ID != id {
		c.w.t.Fatalf("receipt %s for %s", show(a), id)
	}
}

// joining admits what is to join a turn, while it is open.
func joining(open *atomic.Bool) func(agent.Input) bool {
	return func(in agent.Input) bool { return in.Joins != 0 && open.Load() }
}

// What is to be added to the running turn passes what waits for its own; without a turn it begins
// one like any other.
func TestSteer(t *testing.T) {
	w := newWorld(t, nil)
	var open atomic.Bool
	open.Store(true)
	w.agent.admits = joining(&open)
	c := w.connect("d")
	c.steer("m0", "nothing runs")
	first := w.take()
	if first.Joins != 0 {
		t.Errorf("it joins %d", first.Joins)
	}
	c.text("m1", "own turn")
	c.steer("m2", "and milk")
	added := w.take()
	if added.Text != "and milk" || added.Joins != first.N {
		t.Fatalf("handed %+v", added.Input)
	}
	w.post("d", agent.Done{N: added.N})
	w.idle()

	// It waits where the agent cannot take it yet, and passes then.
	open.Store(false)
	c.steer("m3", "and bread")
	c.sync()
	w.idle()
	open.Store(true)
	w.agent.host.Changed()
	if h := w.take(); h.Text != "and bread" || h.Joins != first.N {
		t.Errorf("handed %+v", h.Input)
	} else {
		w.post("d", agent.Done{N: h.N})
	}

	// One that came too late for its turn is not added to the next.
	open.Store(false)
	c.steer("m4", "too late")
	c.sync()
	open.Store(true)
	w.reply(first, "done")
	second := w.take()
	if second.Text != "own turn" || second.Joins != 0 {
		t.Errorf("handed %+v", second.Input)
	}
	w.agent.host.Changed()
	c.sync()
	w.idle()
	w.reply(second, "done")
	if h := w.take(); h.Text != "too late" || h.Joins != 0 {
		t.Errorf("handed %+v", h.Input)
	} else {
		w.reply(h, "answered by itself")
	}
}

// What the agent cannot add after all gets a turn of its own, in its place.
func TestSteerInVain(t *testing.T) {
	w := newWorld(t, nil)
	var open atomic.Bool
	open.Store(true)
	w.agent.admits = joining(&open)
	c := w.connect("d")
	c.text("m1", "one")
	first := w.take()
	c.steer("m2", "two")
	c.text("m3", "three")
	w.next().taken(agent.ErrOwnTurn)
	c.sync()
	w.idle()
	w.reply(first, "1")
	for _, want := range []string{"two", "three"} {
		h := w.take()
		if h.Text != want || h.Joins != 0 {
			t.Errorf("handed %+v, want %s", h.Input, want)
		}
		w.reply(h, "done")
	}
}

// After a crash nobody knows whether what was given was read: it is handed again as that, and joins
// nothing.
func TestSteerBeforeACrash(t *testing.T) {
	w := newWorld(t, nil)
	var open atomic.Bool
	open.Store(true)
	w.agent.admits = joining(&open)
	c := w.connect("d")
	c.text("m1", "one")
	w.take()
	c.steer("m2", "given")
	h := w.next()
	w.post("d", agent.Given{N: h.N})
	w = w.crash()
	w.agent.admits = joining(&open)
	first := w.take()
	w.reply(first, "1")
	if h := w.take(); h.Text != "given" || !h.Handed || !h.Steer || h.Joins != 0 {
		t.Errorf("handed %+v", h.Input)
	}
}

func TestSteerCapability(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	for _, on := range []bool{true, false} {
		w.agent.set(func(s *agent.Status) { s.Steer = on })
		if f := expect[*frame.CapabilitiesChanged](c); f.Capabilities.Steer != on {
			t.Errorf("told %s", show(f))
		}
	}
}
