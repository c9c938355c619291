package hub_test

import (
	"fmt"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

// Stop reaches the agent while a turn runs, and only then.
func TestStop(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.send(&frame.Stop{ID: "x1"})
	if a := expect[*frame.Accepted](c); a.Duplicate {
		t.Errorf("receipt %s", show(a))
	}
	c.text("m1", "one")
	h := w.take()
	c.send(&frame.Stop{})
	if d := receive(t, w.agent.stops, "the stop"); d != "d" {
		t.Errorf("stop of %q", d)
	}
	for range 2 {
		c.send(&frame.Stop{ID: "x2"})
	}
	receive(t, w.agent.stops, "the stop")
	c.sync()
	w.post("d", agent.Done{N: h.N, Interrupted: true})
	c.sync()
	c.send(&frame.Stop{})
	c.sync()
	if len(w.agent.stops) != 0 {
		t.Errorf("%d stops too many", len(w.agent.stops))
	}
}

// Steps come faster than they are sent. What is shown below them comes after the newest of them,
// and the final is whole.
func TestStepsBeforeWhatFollows(t *testing.T) {
	w := newWorld(t, nil)
	for name, opts := range map[string][]option{"whole": {func(d *dialing) { d.hello.Accept = []string{frame.AcceptTool} }}, "delta": {withDelta()}} {
		c := w.connect(name, opts...)
		f := value[hashed](t)(w.put([]byte("a file")))
		follow := []agent.Event{
			agent.ToolStep{ID: "t", Name: "terminal", State: "started"},
			agent.Ask{Card: approvalCard(name, 0)},
			agent.SendFile{ID: "f", File: agent.File{Kind: "document", Name: "f.txt", Hash: f.hash, Size: f.size}},
		}
		text, shown := "", ""
		for _, next := range follow {
			for i := range 200 {
				text += fmt.Sprint(i, " ")
				w.hub.Post(name, nil, agent.Say{ID: "s1", Text: text})
			}
			w.post(name, next)
			for came := false; !came; {
				f, err := c.any()
				ok(t, err)
				switch f := f.(type) {
				case *frame.Message:
					if shown = f.Text; f.Append != nil {
						shown = text[:f.At] + *f.Append
					}
				case *frame.Tool, *frame.Prompt, *frame.Media:
					if came = true; shown != text {
						t.Errorf("%s: %T came after %d bytes of %d", name, next, len(shown), len(text))
					}
				}
			}
		}
		w.post(name, agent.Say{ID: "s1", Text: text + "end", Final: true})
		if m := c.message(); m.Text != text+"end" && (m.Append == nil || text[:m.At]+*m.Append != text+"end") {
			t.Errorf("%s: the final is %s", name, show(m))
		}
	}
}

// Working outside of a turn shows the indicator, and a turn's end turns it off.
func TestIndicators(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "one")
	if a := find[*frame.Avatar](c, nil); a.State != "thinking" {
		t.Errorf("avatar %s", a.State)
	}
	if y := find[*frame.Typing](c, nil); y.Stop {
		t.Error("typing is off")
	}
	h := w.take()
	w.post("d", agent.Working{})
	began := time.Now()
	w.reply(h, "1")
	if a := find[*frame.Avatar](c, nil); a.State != "speaking" {
		t.Errorf("avatar %s", a.State)
	}
	if m := find[*frame.Message](c, nil); m.Text != "1" {
		t.Errorf("reply %s", show(m))
	}
	if y := find[*frame.Typing](c, nil); !y.Stop {
		t.Error("typing stays on")
	}
	if a := find[*frame.Avatar](c, nil); a.State != "idle" {
		t.Errorf("avatar %s", a.State)
	}
	if d := time.Since(began); d < 500*time.Millisecond || d > 5*time.Second {
		t.Errorf("idle came after %v, want a second", d)
	}
}
