package e2e

import (
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// add sends a text that is to be added to the running turn.
func (p *Phone) add(t *testing.T, text string) (id string) {
	t.Helper()
	out, err := p.Send(t.Context(), text, device.Steer())
	if err != nil {
		t.Fatal(err)
	}
	return p.Receipt(out).ID
}

// steer: a text is added to the turn that runs. While a tool runs the model reads it, and one reply answers both; without a tool
// it is answered after the turn's reply.
func steer(t *testing.T, w *world) {
	p := w.phone(t, "steer")
	if !p.Status().Capabilities.Steer {
		t.Fatalf("the capabilities are %+v", p.Status().Capabilities)
	}
	mark := p.Mark()
	first := p.Say("FM:exec(sleep 6) FM:text(both)")
	w.asked(t, "FM:exec(sleep 6) FM:text(both)") // and so the tool runs
	waits := p.Submit("FM:text(waited)")         // is not added, and passed by what is
	p.Receipt(waits)
	p.add(t, "And milk, FM:text(both)")
	if m := p.Answered(mark, first); m.Text != "both" {
		t.Errorf("the reply is %+v", m)
	}
	if m := p.Answered(mark, waits.ID); m.Text != "waited" {
		t.Errorf("what waited was answered %+v", m)
	}
	p.Idle()
	if all := p.Finals(mark); len(all) != 2 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
	w.request(t, "what was added, in the request that gave the reply", func(r hermes.Request) bool {
		if r.Reply != "both" {
			return false
		}
		for _, m := range r.Messages {
			if strings.Contains(m.Text, "And milk") {
				return true
			}
		}
		return false
	})

	mark = p.Mark()
	long := "For steer FM:slow(5)"
	first = p.Say(long)
	if w.newer() {
		Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	}
	w.asked(t, long)
	second := p.add(t, "FM:text(the second)")
	if m := p.Answered(mark, second); m.Text != "the second" || m.Interrupted {
		t.Errorf("what was added was answered %+v", m)
	}
	p.Idle()
	all := p.Finals(mark)
	if len(all) != 2 || all[0].ReplyTo != first || all[0].Text != modelLines(900) || all[0].Interrupted {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
	p.Ask("And now FM:text(on it goes)", "on it goes")
	p.Idle()
}

// directSteer: with 0.22 a text is added to the run, or begins a turn of its own where the model did not read it; with 0.19 it waits.
func directSteer(t *testing.T, w *world) {
	p := w.phone(t, "steer")
	can := w.version == hermes.V022
	if got := p.Status().Capabilities.Steer; got != can {
		t.Fatalf("the capability is %v", got)
	}
	mark := p.Mark()
	first := p.Say("FM:slow(4)")
	Wait(p, mark, "some text", func(m device.Message) bool { return m.Text != "" })
	second := p.add(t, "FM:text(the second)")
	if m := p.Answered(mark, second); m.Text != "the second" {
		t.Errorf("what was added was answered %+v", m)
	}
	p.Idle()
	if all := p.Finals(mark); len(all) != 2 || all[0].ReplyTo != first || all[0].Text != modelLines(900) {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
	if !can {
		return
	}
	mark = p.Mark()
	first = p.Say("FM:exec(sleep 6) FM:text(both)")
	Wait(p, mark, "the tool", func(s device.Tool) bool { return s.State == "started" })
	p.add(t, "And milk, FM:text(both)")
	if m := p.Answered(mark, first); m.Text != "both" {
		t.Errorf("the reply is %+v", m)
	}
	p.Idle()
	if all := p.Finals(mark); len(all) != 1 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
}
