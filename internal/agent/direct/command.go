package direct

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// slash is a command that is typed as a message. To Hermes' API they are plain text (api-facts §4), so they are ours.
type slash struct {
	name, args, about string
	outOfBand         bool // it is about the running turn, and does not wait for its end
	offered           func(*gateway.Capabilities) bool
	run               func(t *turn, args string) string
}

var slashes []*slash

func init() {
	always := func(*gateway.Capabilities) bool { return true }
	slashes = []*slash{
		{name: "/new", args: "[title]", about: "begin a new session", offered: always, run: slashNew},
		{name: "/stop", about: "stop what is being done", outOfBand: true, offered: canStop, run: slashStop},
		{name: "/status", about: "say which session, model and gateway this is", outOfBand: true, offered: always, run: slashStatus},
		{name: "/model", args: "[name]", about: "show the models, or choose one", offered: offers("models"), run: slashModel},
		{name: "/sethome", about: "have what is delivered to home come to this device", outOfBand: true, offered: always, run: slashHome},
		{name: "/help", about: "list these commands", outOfBand: true, offered: always, run: slashHelp},
	}
}

func offers(operation string) func(*gateway.Capabilities) bool {
	return func(c *gateway.Capabilities) bool { return c != nil && c.Offers(operation) }
}

// unknown answers a command that is none of ours: the gateway's API would hand it to the model as words.
var unknown = &slash{outOfBand: true, run: slashUnknown}

// commandForm is what a command looks like: one word behind the slash, so that a path is none.
var commandForm = regexp.MustCompile(`^/[A-Za-z][\w-]{0,31}$`)

// command is the command that an input is, nil where it is none.
func command(in agent.Input) (*slash, string) {
	if in.Kind != agent.Text || !strings.HasPrefix(in.Text, "/") {
		return nil, ""
	}
	name, args := strings.TrimSpace(in.Text), ""
	if at := strings.IndexFunc(name, unicode.IsSpace); at >= 0 {
		name, args = name[:at], strings.TrimSpace(name[at:])
	}
	for _, c := range slashes {
		if strings.EqualFold(c.name, name) {
			return c, args
		}
	}
	if commandForm.MatchString(name) {
		return unknown, name
	}
	return nil, ""
}

func slashUnknown(t *turn, name string) string {
	return "There is no command " + name + " on this connection. /help lists those there are."
}

func slashHome(t *turn, _ string) string {
	t.post(agent.Home{})
	return "This device is the home channel now: what is delivered to \"home\" comes here."
}

func slashNew(t *turn, title string) string {
	if !offers("session_create")(t.agent.capabilities()) {
		if err := t.agent.switchSession(t.startCtx, t.in.Device, ""); err != nil {
			return sentence(err)
		}
		return "A new conversation."
	}
	ctx, cancel := context.WithTimeout(t.startCtx, callLimit)
	defer cancel()
	if _, err := t.agent.newSession(ctx, t.in.Device, title); err != nil {
		return "No new session: " + sentence(err)
	}
	if title != "" {
		return "A new session: " + title
	}
	return "A new session."
}

func slashStop(t *turn, _ string) string {
	running := t.agent.turnOf(t.in.Device)
	if running == nil {
		return "Nothing is being done."
	}
	running.stop()
	return ""
}

func slashStatus(t *turn, _ string) string {
	a := t.agent
	known, err := a.memory.get(t.ctx, t.in.Device)
	if err != nil {
		return sentence(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n", strings.TrimSuffix(a.Status(t.in.Device).Detail, "."))
	if known.Session != "" {
		fmt.Fprintf(&b, "Session: `%s`\n", known.Session)
	}
	if known.Model != "" {
		fmt.Fprintf(&b, "Model: `%s`\n", known.Model)
	}
	if a.turnOf(t.in.Device) != nil {
		b.WriteString("It is working on your message.\n")
	}
	return strings.TrimSpace(b.String())
}

func slashModel(t *turn, name string) string {
	ctx, cancel := context.WithTimeout(t.startCtx, callLimit)
	defer cancel()
	known, err := t.agent.memory.get(ctx, t.in.Device)
	if err != nil {
		return sentence(err)
	}
	list, err := t.agent.models(ctx, known)
	if err != nil {
		return "The models cannot be listed: " + sentence(err)
	}
	if name == "" {
		var b strings.Builder
		for _, m := range list {
			mark := ""
			if m.Current {
				mark = " (in use)"
			}
			fmt.Fprintf(&b, "- `%s`%s\n", m.ID, mark)
		}
		return strings.TrimSpace(b.String())
	}
	for _, m := range list {
		if strings.EqualFold(m.ID, name) || strings.EqualFold(m.Name, name) {
			if err := t.agent.choose(ctx, t.in.Device, m.ID, m.Provider); err != nil {
				return sentence(err)
			}
			return "From now on: " + m.ID
		}
	}
	return "This gateway has no model " + name + ". /model lists those there are."
}

func slashHelp(t *turn, _ string) string {
	var b strings.Builder
	for _, c := range t.agent.commands() {
		fmt.Fprintf(&b, "- `%s` %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Description)
	}
	return strings.TrimSpace(b.String())
}

// commands are those that the gateway can follow.
func (a *Agent) commands() []agent.Command {
	caps := a.capabilities()
	var list []agent.Command
	for _, c := range slashes {
		if c.offered(caps) {
			list = append(list, agent.Command{Name: c.name, Description: c.about, Args: c.args})
		}
	}
	return list
}
