package demo

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/internal/agent"
)

// commands asks the agent for what a person may type.
func (s *stage) commands() (list []agent.Command) {
	s.t.Helper()
	if got := s.agent.Methods("d"); !slices.Equal(got, []string{agent.CommandsList}) {
		s.t.Fatalf("methods %q", got)
	}
	result, err := s.agent.Call(context.Background(), agent.Call{Device: "d", From: "d", Method: agent.CommandsList, Params: []byte("{}")})
	if err != nil {
		s.t.Fatal(err)
	}
	var commands agent.Commands
	if err := json.Unmarshal(result, &commands); err != nil {
		s.t.Fatal(err)
	}
	return commands.Commands
}

// Whatever is offered is written down, and the other way round.
func TestCommandsAreTheDocuments(t *testing.T) {
	text, err := os.ReadFile("../../../doc/demo-agent.md")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for row := range strings.Lines(string(text)) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !strings.HasPrefix(cell, "`/") {
			continue
		}
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			line := word[1]
			if !strings.HasPrefix(line, "/") {
				line = "/demo " + line
			}
			line, _, _ = strings.Cut(line, " N")
			if !slices.Contains(want, line) {
				want = append(want, line)
			}
		}
	}
	if len(want) < 15 {
		t.Fatalf("the document names %q only", want)
	}
	var got []string
	for _, c := range newStage(t).commands() {
		got = append(got, c.Name)
		if c.Description == "" || len(c.Description) > 60 {
			t.Errorf("%s: %q does not fit beside its name", c.Name, c.Description)
		}
	}
	slices.Sort(want)
	if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) {
		t.Errorf("offered %q, the document has %q", sorted, want)
	}
}

func TestCommandsWhileAway(t *testing.T) {
	s := newStage(t)
	s.final(s.text("/demo away 1"))
	if !receive(t, s.host.moved, "the agent to be gone").Online {
		if _, err := s.agent.Call(context.Background(), agent.Call{Method: agent.CommandsList}); err != nil && !errors.Is(err, agent.ErrAway) {
			t.Errorf("while away: %v", err)
		}
	}
	if st := receive(t, s.host.moved, "the agent to be back"); !st.Online {
		t.Fatal("not back")
	}
	if len(s.commands()) == 0 {
		t.Error("no commands")
	}
}

// A conversation that asks for profiles has two, and chooses between them; no other one is told of them.
func TestProfiles(t *testing.T) {
	s := newStage(t)
	say := func(want string) {
		t.Helper()
		s.text("/demo profiles")
		if got := next[agent.Say](s); got.Text != want || !got.Final {
			t.Errorf("%+v, want %q", got, want)
		}
		next[agent.Done](s)
	}
	say("profiles: default, work; you use default")
	if got := s.agent.Methods("d"); !slices.Equal(got, []string{agent.CommandsList, agent.ProfilesList, agent.ProfilesChoose}) {
		t.Errorf("methods %q", got)
	}
	if got := s.agent.Methods("other"); len(got) != 1 {
		t.Errorf("another conversation has %q", got)
	}
	call := func(method, params string) (string, error) {
		b, err := s.agent.Call(context.Background(), agent.Call{Device: "d", From: "d", Method: method, Params: []byte(params)})
		return string(b), err
	}
	var refused *agent.CallError
	if _, err := call(agent.ProfilesChoose, `{"name":"none"}`); !errors.As(err, &refused) || refused.Code != agent.NotFound {
		t.Errorf("%v", err)
	}
	if got, err := call(agent.ProfilesChoose, `{"name":"work"}`); err != nil || got != `{"ok":true}` {
		t.Errorf("%s %v", got, err)
	}
	if got, err := call(agent.ProfilesList, `{}`); err != nil || got != `{"profiles":[{"name":"default","current":false},{"name":"work","current":true}]}` {
		t.Errorf("%s %v", got, err)
	}
	say("profiles: default, work; you use work")
}
