package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// TestRestarts ends the gateway and the server in the middle of turns, politely and not.
func TestRestarts(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := newWorld(t, v)
		for _, c := range []struct {
			name string
			end  func(t *testing.T, p *Phone)
		}{
			{"server stopped", func(*testing.T, *Phone) { w.server.Stop(); w.server.Start() }},
			{"server killed", func(*testing.T, *Phone) { w.server.Kill(); w.server.Start() }},
			{"gateway stopped", func(*testing.T, *Phone) { w.gateway.Restart(false) }},
			{"gateway killed", func(t *testing.T, p *Phone) {
				w.gateway.Kill()
				w.whileDown(t, p)
			}},
		} {
			t.Run(c.name, func(t *testing.T) { w.interrupted(t, "phone "+c.name, c.end) })
		}
		if w.newer() {
			t.Run("card", w.cardOutlives)
		}
	})
}

// interrupted: whatever happens in the middle of a turn, what was begun gets an end, the next message is answered, and
// nothing comes twice.
func (w *world) interrupted(t *testing.T, name string, end func(*testing.T, *Phone)) {
	p := w.phone(t, strings.ReplaceAll(name, " ", "-"))
	mark := p.Mark()
	word := "For " + name + " FM:slow(5)"
	id := p.Say(word)
	if w.newer() {
		Wait(p, mark, "some text", func(m device.Message) bool { return strings.Contains(m.Text, "Line 0001") })
	}
	w.asked(t, word)
	began := time.Now()
	end(t, p)
	p.Online()
	t.Logf("the agent is back after %v", time.Since(began).Round(time.Millisecond))
	next := p.Say("And now FM:text(after " + name + ")")
	m := p.Answered(mark, next)
	t.Logf("the next message was answered after %v", time.Since(began).Round(time.Millisecond))
	if m.Text != "after "+name || m.Interrupted {
		t.Errorf("the next message was answered %+v", m)
	}
	p.Idle()
	p.checkEnds(t, mark)
	whole, texts := modelLines(900), map[string]int{}
	if w.newer() && strings.HasSuffix(name, "gateway killed") {
		p.goesOn(t, mark, id, whole)
	}
	for _, m := range p.Finals(mark) {
		t.Logf("final: interrupted %v, reply to the first %v, %d characters: %.60q", m.Interrupted, m.ReplyTo == id, len(m.Text), m.Text)
		texts[m.Text]++
		if texts[m.Text] > 1 {
			t.Errorf("came twice: %+v", m)
		}
		// The newer version, when it is stopped, sends what it has of a reply just as it sends a whole one.
		cut := w.newer() && strings.HasSuffix(name, "gateway stopped")
		if m.ReplyTo == id && m.Text != whole && !m.Interrupted && !cut {
			t.Errorf("a part of a reply counts as whole: %+v", m)
		}
	}
}

// goesOn: the reply that a gateway was killed in the middle of goes on under its id, and never gets shorter.
func (p *Phone) goesOn(t *testing.T, mark int, id, whole string) {
	t.Helper()
	before := device.Message{}
	for _, ev := range p.Since(mark) {
		m, ok := ev.(device.Message)
		if !ok || m.ReplyTo != "" && m.ReplyTo != id || !strings.HasPrefix(m.Text, "Line 0001") {
			continue
		}
		if before.ID != "" && m.ID != before.ID || !strings.HasPrefix(m.Text, before.Text) {
			t.Errorf("after %+v came %+v", before, m)
		}
		before = m
	}
	if !before.Final || before.Interrupted || before.Text != whole {
		t.Errorf("the end is %+v", before)
	}
}

// cardOutlives: a card is open after a crash of the server, too, and its answer reaches the agent; after a crash
// of the gateway the stop button closes it.
func (w *world) cardOutlives(t *testing.T) {
	p := w.phone(t, "card")
	mark := p.Mark()
	p.Say("FM:exec FM:exec(" + danger + "-2) FM:text(both are done)")
	card := p.Card(mark, frame.ExecApproval)
	w.server.Kill()
	w.server.Start()
	again := Wait(p, mark, "the card again", func(c device.CardShown) bool { return c.Again && c.ID == card.ID })
	if again.Command != card.Command || again.TimeoutSeconds <= 0 || again.TimeoutSeconds > card.TimeoutSeconds || !again.ExpiresAt.Equal(card.ExpiresAt) {
		t.Errorf("the card came again as %+v", again)
	}
	second := p.Mark()
	p.Choose(card, "once", "")
	next := p.Card(second, frame.ExecApproval)
	if next.Command != danger+"-2" {
		t.Errorf("the second card is %+v", next)
	}
	w.gateway.Kill()
	p.Agent(frame.Away)
	w.gateway.Run()
	p.Online()
	// It may go on with the turn by itself, or have forgotten it and the card: the person can end it in any case.
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := Wait(p, mark, "the second card's end", func(d device.CardDone) bool { return d.ID == next.ID })
	if done.OptionID != "" && done.OptionID != "deny" {
		t.Errorf("the second card ended as %+v", done)
	}
	p.Idle()
	p.Ask("And now FM:text(it goes on)", "it goes on")
}

// checkEnds: every message that was begun was finished, once.
func (p *Phone) checkEnds(t *testing.T, mark int) {
	t.Helper()
	ended := map[string]int{}
	for _, ev := range p.Since(mark) {
		if m, ok := ev.(device.Message); ok {
			if _, begun := ended[m.ID]; !begun {
				ended[m.ID] = 0
			}
			if m.Final {
				ended[m.ID]++
			}
		}
	}
	for id, n := range ended {
		if n != 1 {
			t.Errorf("message %s was finished %d times", id, n)
		}
	}
}

// whileDown: what is sent while the gateway is down waits, and is answered in order, once each, when it is back.
func (w *world) whileDown(t *testing.T, p *Phone) {
	p.Agent(frame.Away)
	mark := p.Mark()
	var ids []string
	for i := range 3 {
		r := p.Receipt(p.Submit(fmt.Sprintf("Then FM:text(waited %d)", i)))
		if !r.Queued {
			t.Errorf("the receipt of what waits is %+v", r)
		}
		ids = append(ids, r.ID)
	}
	w.gateway.Run()
	p.Answered(mark, ids[2])
	p.Idle()
	n := 0
	for _, m := range p.Finals(mark) {
		if strings.HasPrefix(m.Text, "waited ") {
			if n >= len(ids) || m.ReplyTo != ids[n] || m.Text != fmt.Sprintf("waited %d", n) {
				t.Errorf("as number %d came %+v", n, m)
			}
			n++
		}
	}
	if n != len(ids) {
		t.Errorf("of %d messages %d were answered", len(ids), n)
	}
}
