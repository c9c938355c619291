package demo

import (
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

// answer tells the agent a decision, which it must take.
func (s *stage) answer(c agent.Card, a agent.Answer) {
	s.t.Helper()
	taken := make(chan error, 2)
	s.agent.Answer(c, a, func(err error) { taken <- err })
	if err := receive(s.t, taken, "the decision to be taken"); err != nil {
		s.t.Errorf("not taken: %v", err)
	}
}

func options(c agent.Card) (list string) {
	for _, o := range c.Options {
		list += o.ID + ":" + o.Style + " "
	}
	return list
}

func TestCards(t *testing.T) {
	for _, tc := range []struct {
		text, kind, options string
		answers             map[agent.Answer]string
	}{
		{"/demo approval", "exec_approval", "once:primary session: always: deny:danger ", map[agent.Answer]string{
			{OptionID: "once"}: "approval: once", {OptionID: "session"}: "approval: session", {OptionID: "always"}: "approval: always",
			{OptionID: "deny"}: "approval: deny", {OptionID: "deny", Expired: true}: "approval: deny"}},
		{"/demo confirm", "slash_confirm", "once:primary always: cancel: ", map[agent.Answer]string{
			{OptionID: "once"}: "confirm: once", {OptionID: "always"}: "confirm: always", {OptionID: "cancel", Expired: true}: "confirm: cancel"}},
		{"/demo clarify", "clarify", "c0: c1: other: ", map[agent.Answer]string{
			{OptionID: "c0"}: "clarify: CSV", {OptionID: "c1"}: "clarify: JSON", {OptionID: "other", Text: "as a drawing"}: "clarify: as a drawing",
			{Expired: true}: "clarify: no answer"}},
	} {
		t.Run(tc.text, func(t *testing.T) {
			s := newStage(t)
			for a, want := range tc.answers {
				in := s.text(tc.text)
				c := next[agent.Ask](s).Card
				if c.ID == "" || c.N != in.N || c.Kind != tc.kind || c.Text == "" || options(c) != tc.options {
					t.Errorf("card %+v", c)
				}
				if tc.kind == "exec_approval" && (c.Command != "rm -rf build" || c.Description != "Deletes the build folder") {
					t.Errorf("card %+v", c)
				}
				if tc.kind == "clarify" && c.Text != "Which format?" {
					t.Errorf("card %+v", c)
				}
				s.answer(c, a)
				say := next[agent.Say](s)
				if say.Text != want || !say.Final || say.Settles != c.ID || say.ReplyTo != in.ID || say.N != in.N {
					t.Errorf("%+v: %+v, want %q", a, say, want)
				}
				next[agent.Done](s)
				s.answer(c, a) // told again: it is settled, and nothing is said twice
				s.silent()
			}
		})
	}
}

// Both cards are open at once; their texts come in the order of the answers, and the turn ends with the second.
func TestTwoCards(t *testing.T) {
	for _, second := range []bool{false, true} {
		s := newStage(t)
		s.text("/demo two-cards")
		a, b := next[agent.Ask](s).Card, next[agent.Ask](s).Card
		if a.Kind != "exec_approval" || b.Kind != "clarify" || a.ID == b.ID {
			t.Fatalf("cards %+v and %+v", a, b)
		}
		texts := []string{"approval: once", "clarify: JSON"}
		if second {
			s.answer(b, agent.Answer{OptionID: "c1"})
			texts[0], texts[1] = texts[1], texts[0]
		}
		s.answer(a, agent.Answer{OptionID: "once"})
		if !second {
			s.answer(b, agent.Answer{OptionID: "c1"})
		}
		for _, want := range texts {
			if say := next[agent.Say](s); say.Text != want || !say.Final {
				t.Errorf("%+v, want %q", say, want)
			}
		}
		next[agent.Done](s)
	}
}

// A turn of an earlier life whose card is still to be decided: the card is not asked again, and its answer has its text.
func TestCardsAfterRestart(t *testing.T) {
	open := approval
	open.ID, open.N = "c-old", 7
	other := clarify
	other.ID, other.N = "c-old-2", 7
	in := agent.Input{N: 7, Handed: true}

	t.Run("one open", func(t *testing.T) {
		s := newStage(t)
		in := in
		in.Text, in.Cards = "/demo approval", []agent.Card{open}
		s.hand(in)
		s.answer(open, agent.Answer{OptionID: "once"})
		if say := next[agent.Say](s); say.Text != "approval: once" || say.Settles != "c-old" {
			t.Errorf("%+v", say)
		}
		next[agent.Done](s)
		s.silent()
	})
	t.Run("two, one settled before", func(t *testing.T) {
		s := newStage(t)
		in := in
		in.Text, in.Cards, in.Texts = "/demo two-cards", []agent.Card{other}, 1
		s.hand(in)
		s.answer(open, agent.Answer{OptionID: "once"}) // told again: it is settled already
		s.silent()
		s.answer(other, agent.Answer{OptionID: "c0"})
		if say := next[agent.Say](s); say.Text != "clarify: CSV" {
			t.Errorf("%+v", say)
		}
		next[agent.Done](s)
		s.silent()
	})
	t.Run("all settled before", func(t *testing.T) {
		s := newStage(t)
		in := in
		in.Text, in.Texts = "/demo approval", 1
		s.hand(in)
		next[agent.Done](s)
		s.silent()
	})
	t.Run("never asked", func(t *testing.T) {
		s := newStage(t)
		in := in
		in.Text = "/demo approval"
		s.hand(in)
		next[agent.Ask](s)
	})
}

// A decision of a turn that nobody runs is taken: it would be told for ever otherwise.
func TestAnswerWithoutTurn(t *testing.T) {
	s := newStage(t)
	c := approval
	c.ID, c.N = "c", 99
	s.answer(c, agent.Answer{OptionID: "once"})
	s.silent()
}

// A rerun skips the finals that an earlier life has stored, and says the rest.
func TestHandedSkipsWhatWasSaid(t *testing.T) {
	for _, tc := range []struct {
		text  string
		texts int
		want  []string
	}{
		{"/demo twice", 0, []string{"one", "two"}},
		{"/demo twice", 1, []string{"two"}},
		{"/demo twice", 2, nil},
		{"/demo stream 3", 0, []string{"w1 w2 w3"}},
		{"/demo stream 3", 1, nil},
		{"/demo slow 0", 1, nil},
		{"/demo long 100", 1, nil},
		{"/demo fail", 1, nil},
		{"hello", 1, nil},
		{"/demo image", 1, nil},
		{"/demo file 10", 1, nil},
	} {
		s := newStage(t)
		in := s.hand(agent.Input{Text: tc.text, Handed: true, Texts: tc.texts})
		var got []string
		for _, e := range s.turn(in) {
			switch e := e.(type) {
			case agent.Say:
				if e.Final {
					got = append(got, e.Text)
				} else if tc.texts > 0 {
					t.Errorf("%s with %d said: a step %+v", tc.text, tc.texts, e)
				}
			default:
				t.Errorf("%s with %d said: %T", tc.text, tc.texts, e)
			}
		}
		if len(got) != len(tc.want) || len(got) > 0 && got[0] != tc.want[0] {
			t.Errorf("%s with %d said: %q, want %q", tc.text, tc.texts, got, tc.want)
		}
	}
}

// Each of the cards that are made to be looked at closely is one that the rule of all clients finds.
func TestOddCards(t *testing.T) {
	s := newStage(t)
	s.text("/demo odd")
	var cards []agent.Card
	for range 4 {
		c := next[agent.Ask](s).Card
		if !frame.Odd(&frame.Prompt{Text: c.Text, Command: c.Command, Description: c.Description}) || c.Kind != frame.ExecApproval {
			t.Errorf("card %+v", c)
		}
		cards = append(cards, c)
	}
	for _, c := range cards {
		s.answer(c, agent.Answer{OptionID: "deny"})
		if say := next[agent.Say](s); say.Text != "approval: deny" {
			t.Errorf("%+v", say)
		}
	}
	next[agent.Done](s)
}
