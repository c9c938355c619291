package e2e

import (
	"fmt"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// clarify: the agent asks the person something, and goes on with the answer.
func clarify(t *testing.T, w *world) {
	if !w.newer() {
		clarifyInWords(t, w)
		return
	}
	p := w.phone(t, "clarify")
	for _, c := range []struct{ ask, option, text, want string }{
		{"FM:clarify", "c1", "", "Blue"},
		{"FM:clarify", frame.OtherOption, "Ultramarine, please", "Ultramarine, please"},
		{"FM:clarifyopen", frame.OtherOption, "Ann", "Ann"},
	} {
		mark := p.Mark()
		id := p.Say(c.ask)
		if c.ask == "FM:clarifyopen" { // a question without choices is no card; this version's words for it are not packaged
			p.Final(mark, "the question", func(m device.Message) bool { return m.ReplyTo == "" })
			p.Say(c.text)
		} else {
			card := p.Card(mark, frame.Clarify)
			if ids := strings.Join(options(card), " "); ids != "c0 c1 other" || !strings.Contains(card.Text, "Which color?") {
				t.Errorf("the card is %+v", card)
			}
			if done := p.Choose(card, c.option, c.text); done.Expired || done.OptionID != c.option {
				t.Errorf("the card ended as %+v", done)
			}
		}
		m := p.Answered(mark, id)
		if !strings.Contains(m.Text, "tool said:") || !strings.Contains(m.Text, c.want) {
			t.Errorf("%s answered by %q gave %q", c.ask, c.text, m.Text)
		}
		p.Idle()
	}
	p.Ask("FM:text(on it goes)", "on it goes")
}

func clarifyInWords(t *testing.T, w *world) {
	p := w.phone(t, "clarify")
	for _, c := range []struct{ ask, words, answer, want string }{
		{"FM:clarify", "Which color?", "2", "Blue"},
		{"FM:clarify", "Which color?", "Ultramarine, please", "Ultramarine, please"},
		{"FM:clarifyopen", "What is your name?", "Ann", "Ann"},
	} {
		mark := p.Mark()
		id := p.Say(c.ask)
		p.Final(mark, "the question "+c.words, func(m device.Message) bool { return strings.Contains(m.Text, c.words) })
		p.Say(c.answer)
		m := p.Answered(mark, id)
		if !strings.Contains(m.Text, c.want) {
			t.Errorf("%s answered by %q gave %q", c.ask, c.answer, m.Text)
		}
		p.Idle()
	}
	p.Ask("FM:text(on it goes)", "on it goes")
}

// history is how many messages of the conversation the model was sent.
func (p *Phone) history() (n int) {
	p.t.Helper()
	if _, err := fmt.Sscanf(p.Ask("FM:history", "messages:").Text, "messages: %d", &n); err != nil {
		p.t.Fatal(err)
	}
	p.Idle()
	return n
}

// startAfresh: /new asks first, and does what was said.
func startAfresh(t *testing.T, w *world) {
	p := w.phone(t, "new")
	p.Ask("FM:text(something to forget)", "something to forget")
	p.Idle()
	before := p.history()

	for _, c := range []struct {
		option, word string
		forgets      bool
	}{{"cancel", "/cancel", false}, {"once", "/approve", true}} {
		mark := p.Mark()
		p.Say("/new")
		if w.newer() {
			card := p.Card(mark, frame.SlashConfirm)
			if ids := strings.Join(options(card), " "); !strings.Contains(ids, "once") || !strings.Contains(ids, "cancel") {
				t.Errorf("the card is %+v", card)
			}
			if done := p.Choose(card, c.option, ""); done.OptionID != c.option || done.Expired {
				t.Errorf("the card ended as %+v", done)
			}
		} else {
			p.Final(mark, "the question", func(m device.Message) bool { return strings.Contains(m.Text, "/cancel") })
			p.Say(c.word)
		}
		p.Idle()
		after := p.history()
		if forgot := after < before; forgot != c.forgets {
			t.Errorf("after %s the model was sent %d messages, %d before", c.option, after, before)
		}
		before = after
	}
}
