package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// danger is the command that FM:exec runs, which needs approval.
const danger = "rm -rf /tmp/x-fake-model"

func options(c device.CardShown) (ids []string) {
	for _, o := range c.Options {
		ids = append(ids, o.ID)
	}
	return ids
}

// approve: a command waits for the person, and what the person says is done.
func approve(t *testing.T, w *world) {
	p := w.phone(t, "approve")
	mark := p.Mark()
	id := p.Say("FM:exec FM:exec(rm -rf /tmp/x-fake-model-2)")
	card := p.Card(mark, frame.ExecApproval)
	if card.Command != danger || card.Text == "" || card.TimeoutSeconds <= 0 || card.Session != "mobile:approve" {
		t.Errorf("the card is %+v", card)
	}
	if ids := options(card); !slices.Contains(ids, "once") || !slices.Contains(ids, "deny") {
		t.Errorf("the options are %q", ids)
	}
	waits := p.Submit("FM:text(afterwards)")
	if r := p.Receipt(waits); r.Queued {
		t.Errorf("the receipt of what waits is %+v", r)
	}

	after := p.Mark()
	if done := p.Choose(card, "once", ""); done.OptionID != "once" || done.Expired {
		t.Errorf("the card ended as %+v", done)
	}
	second := p.Card(after, frame.ExecApproval)
	if second.ID == card.ID || second.Command != danger+"-2" {
		t.Errorf("the second card is %+v", second)
	}
	if len(p.Finals(mark)) > 0 {
		t.Errorf("before the answer came %+v", p.Finals(mark))
	}
	if done := p.Choose(second, "deny", ""); done.OptionID != "deny" || done.Expired {
		t.Errorf("the second card ended as %+v", done)
	}
	m := p.Answered(mark, id)
	if !strings.Contains(m.Text, "tool said:") || !strings.Contains(m.Text, "BLOCKED") {
		t.Errorf("a denied command gave %q", m.Text)
	}
	if ran := w.results(t, "FM:exec FM:exec("); len(ran) < 2 || strings.Contains(ran[0], "BLOCKED") || !strings.Contains(ran[0], `"exit_code": 0`) {
		t.Errorf("the tool's results are %q", ran)
	}
	if m := p.Answered(mark, waits.ID); m.Text != "afterwards" {
		t.Errorf("what waited was answered %+v", m)
	}
	p.Idle()
	if all := p.Finals(mark); len(all) != 2 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
}

// results are what tools gave in the turn that a message with this beginning began.
func (w *world) results(t *testing.T, begin string) (list []string) {
	t.Helper()
	for _, r := range w.model.Requests() {
		if !strings.Contains(r.LastUser(), begin) {
			continue
		}
		list = nil
		for _, m := range r.Messages {
			switch m.Role {
			case "user":
				list = nil
			case "tool":
				list = append(list, m.Text)
			}
		}
	}
	return list
}

// cardElsewhere: a card that is open on one device holds up no other.
func cardElsewhere(t *testing.T, w *world) {
	a, b := w.phone(t, "card-a"), w.phone(t, "card-b")
	mark := a.Mark()
	id := a.Say("FM:exec FM:text(a is done)")
	card := a.Card(mark, frame.ExecApproval)
	b.Ask("FM:text(b meanwhile)", "b meanwhile")
	out, err := b.Answer(t.Context(), card.ID, "once", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), string(frame.Forbidden)) {
		t.Errorf("another device's answer gave %v", err)
	}
	a.Choose(card, "deny", "")
	if m := a.Answered(mark, id); m.Text != "a is done" {
		t.Errorf("a got %+v", m)
	}
}

// cardStopped: the stop button ends a turn that asks something, and its card.
func cardStopped(t *testing.T, w *world) {
	p := w.phone(t, "card-stopped")
	mark := p.Mark()
	p.Say("FM:exec")
	card := p.Card(mark, frame.ExecApproval)
	began := time.Now()
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Idle()
	t.Logf("the turn ended after %v", time.Since(began).Round(time.Millisecond))
	done := Wait(p, mark, "the card's end", func(d device.CardDone) bool { return d.ID == card.ID })
	if done.OptionID != "" && done.OptionID != "deny" {
		t.Errorf("the card ended as %+v", done)
	}
	p.Ask("And now FM:text(it goes on)", "it goes on")
}

// TestCardExpires shows what becomes of a card that nobody answers, with a gateway that waits for seconds only.
func TestCardExpires(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hermes.V022, func(s *hermes.Setup) {
		s.ConfigExtra = map[string]any{"approvals": map[string]any{"timeout": 8}}
	})
	p := w.phone(t, "late")
	mark := p.Mark()
	began := time.Now()
	id := p.Say("FM:exec")
	card := p.Card(mark, frame.ExecApproval)
	done := Wait(p, mark, "the card's end", func(d device.CardDone) bool { return d.ID == card.ID })
	t.Logf("the card was closed after %v", time.Since(began).Round(time.Millisecond))
	if !done.Expired {
		t.Errorf("the card ended as %+v", done)
	}
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "tool said:") || !strings.Contains(m.Text, "BLOCKED") {
		t.Errorf("a command that nobody approved gave %q", m.Text)
	}
	p.Idle()

	// The app was installed anew, so that its SDK knows nothing of the card.
	p.Leave()
	p.Reinstall(w.server)
	p.Online()
	mark = p.Mark()
	if done := p.Choose(card, "once", ""); !done.Expired {
		t.Errorf("a late answer gave %+v", done)
	}
	p.Ask("FM:text(on it goes)", "on it goes")
	p.Idle()
	if all := p.Finals(mark); len(all) != 1 {
		t.Errorf("%d messages came: %+v", len(all), all)
	}
}

// noCards: the older version asks in words, and says so before.
func noCards(t *testing.T, w *world) {
	p := w.phone(t, "no-cards")
	if c := p.Status().Capabilities; c.Prompt || c.Edit || c.Delta || c.Typing || !c.Stop || !c.Text {
		t.Errorf("the capabilities are %+v", c)
	}
}

// TestDenyByText shows the approvals of the older version, in words. The gateway takes nothing for 30 s after such an
// answer, from any device, so it has a gateway of its own; TestSetup approves.
func TestDenyByText(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hermes.V019)
	w.phone(t, "text-deny").answerInWords(t, "/deny", "BLOCKED", "\x00")
}

// answerInWords answers a question of the older version for approval: the tool's result has one text and not another.
func (p *Phone) answerInWords(t *testing.T, answer, want, not string) {
	t.Helper()
	mark := p.Mark()
	id := p.Say("FM:exec")
	p.Final(mark, "the question", func(m device.Message) bool {
		return strings.Contains(m.Text, "/approve") && strings.Contains(m.Text, danger)
	})
	began := time.Now()
	p.Say(answer)
	m := p.Final(mark, "the tool's result", func(m device.Message) bool { return strings.Contains(m.Text, "tool said:") })
	t.Logf("the result came after %v", time.Since(began).Round(time.Millisecond))
	if !strings.Contains(m.Text, want) || strings.Contains(m.Text, not) || m.ReplyTo != id {
		t.Errorf("the result is %+v", m)
	}
	p.Idle()
	p.Ask("FM:text(on it goes)", "on it goes")
	t.Logf("the next message was answered after %v", time.Since(began).Round(time.Millisecond))
	if n := len(slices.DeleteFunc(p.Finals(mark), func(m device.Message) bool { return !strings.Contains(m.Text, "tool said:") })); n != 1 {
		t.Errorf("the result came %d times: %+v", n, p.Finals(mark))
	}
}
