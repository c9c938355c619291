package demo

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

// scripted is a command: a word after `/demo`, and what it does with the rest of the line.
type scripted struct {
	name, args, says string
	do               func(t *turn, argument string)
}

// setHome makes the device the home channel.
const setHome = "/sethome"

// script is all commands, in the order in which users see them.
var script = []scripted{
	{"stream", "N", "streams N words, one a step", func(t *turn, argument string) {
		t.number(argument, 1, maxSteps, func(n int) { t.stream(counted(n), 10*time.Millisecond, last(counted(n))) })
	}},
	{"pause", "N", "streams, is silent for N seconds, and goes on", func(t *turn, argument string) {
		t.number(argument, 0, maxSeconds, func(n int) {
			t.stream([]string{"before", "before after"}, time.Duration(n)*time.Second, "before after")
		})
	}},
	{"rewrite", "", "streams, then changes all it said", func(t *turn, _ string) {
		t.stream([]string{"one", "one two", "one two three", "three two one"}, 150*time.Millisecond, "three two one.")
	}},
	{"long", "N", "one reply of N characters", func(t *turn, argument string) {
		t.number(argument, 1, maxLong, func(n int) { t.reply(long(n)) })
	}},
	{"twice", "", "two replies to one message", func(t *turn, _ string) {
		t.final(t.message(agent.NewID(), "one", true), false)
		t.final(t.message(agent.NewID(), "two", true), true)
	}},
	{"approval", "", "asks whether it may run a command", func(t *turn, _ string) { t.ask([]agent.Card{approval}, cardText) }},
	{"odd", "", "asks about four commands that are not what they look like", func(t *turn, _ string) { t.ask(odd(), cardText) }},
	{"confirm", "", "asks whether it may go on", func(t *turn, _ string) { t.ask([]agent.Card{confirm}, cardText) }},
	{"clarify", "", "asks which format you want", func(t *turn, _ string) { t.ask([]agent.Card{clarify}, cardText) }},
	{"two-cards", "", "asks two questions at once", func(t *turn, _ string) { t.ask([]agent.Card{approval, clarify}, cardText) }},
	{"image", "", "sends a picture", func(t *turn, _ string) { t.sample("image") }},
	{"voice", "", "sends a voice message", func(t *turn, _ string) { t.sample("voice") }},
	{"video", "", "sends a film", func(t *turn, _ string) { t.sample("video") }},
	{"animation", "", "sends an animation", func(t *turn, _ string) { t.sample("animation") }},
	{"file", "[N]", "sends a document, or a file of N bytes", func(t *turn, argument string) {
		if argument == "" {
			t.sample("file")
		} else {
			t.number(argument, 0, maxFile, t.file)
		}
	}},
	{"tool", "", "tells of a tool that it uses", func(t *turn, _ string) { t.tool() }},
	{"profiles", "", "has profiles to choose from, and says which one you use", func(t *turn, _ string) { t.reply(t.agent.hasProfiles(t.in.Device)) }},
	{"slow", "N", "works for N seconds", func(t *turn, argument string) { t.number(argument, 0, maxSeconds, t.slow) }},
	{"fail", "", "fails in the middle of its work", func(t *turn, _ string) {
		t.reply("The agent failed in the middle of its work: this is what an error looks like. Nothing else was lost, go on.")
	}},
	{"say", "N TEXT", "says TEXT by itself, N seconds later", func(t *turn, argument string) {
		seconds, text, _ := strings.Cut(argument, " ")
		t.number(seconds, 0, maxSeconds, func(n int) { t.later(n, text) })
	}},
	{"away", "N", "is gone for N seconds", func(t *turn, argument string) {
		t.number(argument, 1, maxSeconds, func(n int) {
			t.reply("away")
			t.agent.goAway(time.Duration(n) * time.Second)
		})
	}},
}

var _ agent.Caller = (*Agent)(nil)

// profiles are the profiles of a conversation that has asked for them.
var profiles = []string{"default", "work"}

// hasProfiles gives a conversation the profiles, and returns a text that lists them.
func (a *Agent) hasProfiles(device string) string {
	a.mu.Lock()
	current, had := a.profile[device]
	if !had {
		current = profiles[0]
		a.profile[device] = current
	}
	host := a.host
	a.mu.Unlock()
	if !had {
		host.Changed()
	}
	return "profiles: " + strings.Join(profiles, ", ") + "; you use " + current
}

// Methods implements agent.Caller.
func (a *Agent) Methods(device string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, has := a.profile[device]; has {
		return []string{agent.CommandsList, agent.ProfilesList, agent.ProfilesChoose}
	}
	return []string{agent.CommandsList}
}

// Call implements agent.Caller.
func (a *Agent) Call(_ context.Context, call agent.Call) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.host == nil || a.away || a.closed {
		return nil, agent.ErrAway
	}
	switch call.Method {
	case agent.ProfilesList:
		var list agent.Profiles
		for _, name := range profiles {
			list.Profiles = append(list.Profiles, agent.Profile{Name: name, Current: name == a.profile[call.Device]})
		}
		return json.Marshal(list)
	case agent.ProfilesChoose:
		name, err := agent.Choice(call.Params, profiles)
		if err != nil {
			return nil, err
		}
		a.profile[call.Device] = name
		return []byte(`{"ok":true}`), nil
	}
	list := make([]agent.Command, 0, len(script)+1)
	for _, l := range script {
		list = append(list, agent.Command{Name: "/demo " + l.name, Description: l.says, Args: l.args})
	}
	list = append(list, agent.Command{Name: setHome, Description: "makes this device the home channel"})
	return json.Marshal(agent.Commands{Commands: list})
}
