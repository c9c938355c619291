package e2e

import (
	"errors"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// share: a phone and a tablet of one person have one conversation with Hermes.
func share(t *testing.T, w *world) {
	anna := func(c *device.Config) { c.User = frame.User{ID: "anna"} }
	p := NewPhone(t, w.server, "share-phone", anna)
	p.Online() // the first device of its user, which may answer at once
	tab := NewPhone(t, w.server, "share-tablet", anna)
	tab.Online()
	if out, err := w.server.CLI(t.Context(), "devices", "join", tab.ID, p.ID); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	shared := func(p *Phone) {
		t.Helper()
		is := func() bool {
			s := p.Status()
			return s.State == device.Online && s.Agent == frame.Online && s.Capabilities.Shared && s.Session == "mobile:share-phone"
		}
		if !is() {
			Wait(p, 0, "the shared conversation", func(device.StatusChanged) bool { return is() })
		}
	}
	shared(p)
	shared(tab)

	both := func(mark, tabMark int, id, want string) {
		t.Helper()
		for _, m := range []device.Message{p.Answered(mark, id), tab.Answered(tabMark, id)} {
			if !strings.Contains(m.Text, want) {
				t.Errorf("the answer is %q, want %q", m.Text, want)
			}
		}
		p.Idle()
		tab.Idle()
	}
	mark, tabMark := p.Mark(), tab.Mark()
	id := tab.Say("FM:text(one for both)")
	if e := Wait(p, mark, "what the tablet said", func(e device.Echo) bool { return e.ID == id }); e.From.ID != tab.ID || !strings.HasPrefix(e.Text, "FM:") {
		t.Errorf("the echo is %+v", e)
	}
	both(mark, tabMark, id, "one for both")

	mark, tabMark = p.Mark(), tab.Mark()
	id = p.Say("FM:text(and back)")
	Wait(tab, tabMark, "what the phone said", func(e device.Echo) bool { return e.ID == id })
	both(mark, tabMark, id, "and back")
	if !w.newer() {
		return
	}

	mark, tabMark = p.Mark(), tab.Mark()
	id = p.Say("FM:exec")
	card, seen := tab.Card(tabMark, frame.ExecApproval), p.Card(mark, frame.ExecApproval)
	if card.ID != seen.ID || card.Session != "mobile:share-phone" {
		t.Errorf("cards %+v, %+v", card, seen)
	}
	// The tablet has just joined, so it may not answer yet.
	early, err := tab.Answer(t.Context(), card.ID, "once", "")
	if err != nil {
		t.Fatal(err)
	}
	var refused *frame.Error
	if _, err := early.Wait(t.Context()); !errors.As(err, &refused) || refused.Code != frame.Forbidden || refused.RetryAfter == 0 {
		t.Errorf("the tablet's answer gets %v", err)
	}
	if done := p.Choose(seen, "once", ""); done.OptionID != "once" || done.By == nil || done.By.ID != p.ID {
		t.Errorf("the phone's card ended as %+v", done)
	}
	if done := Wait(tab, tabMark, "the end of the card", func(d device.CardDone) bool { return d.ID == card.ID }); done.OptionID != "once" || done.By == nil || done.By.ID != p.ID {
		t.Errorf("the tablet's card ended as %+v", done)
	}
	both(mark, tabMark, id, "tool said:")
}
