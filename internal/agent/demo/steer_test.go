package demo

import (
	"errors"
	"testing"

	"hermes-mobile/internal/agent"
)

// A text joins the turn that runs, whose last message tells of it; a turn that is over takes nothing.
func TestSteer(t *testing.T) {
	s := newStage(t)
	join := func(n, joins int64, text string) error {
		told := make(chan error, 1)
		s.agent.Hand(agent.Input{N: n, Device: "d", Text: text, Steer: true, Joins: joins}, func(err error) { told <- err })
		return receive(t, told, "what it was told")
	}
	in := s.text("/demo pause 1")
	next[agent.Say](s)
	if !s.agent.Admits(agent.Input{N: 99, Device: "d", Joins: in.N}) || s.agent.Admits(agent.Input{N: 99, Device: "d", Joins: in.N + 1}) ||
		s.agent.Admits(agent.Input{N: 99, Device: "d"}) {
		t.Error("it admits the wrong texts")
	}
	for i, text := range []string{"one", "two"} {
		if err := join(90+int64(i), in.N, text); err != nil {
			t.Fatal(err)
		}
		if d := next[agent.Done](s); d.N != 90+int64(i) {
			t.Errorf("ended %+v", d)
		}
	}
	for {
		say := next[agent.Say](s)
		if !say.Final {
			continue
		}
		if want := "before after\nYou added: one\nYou added: two"; say.Text != want || say.N != in.N {
			t.Errorf("the last message is %+v", say)
		}
		break
	}
	next[agent.Done](s)
	if err := join(99, in.N, "late"); !errors.Is(err, agent.ErrOwnTurn) {
		t.Errorf("a late text was told %v", err)
	}
}
