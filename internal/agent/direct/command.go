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

// slash is a command that the user types as a message. For Hermes' API commands are plain text
// (doc/hermes/api.md §4), so this agent runs them itself.
type slash struct {
	name, args, about string
	outOfBand         bool // about the running turn: does not wait for its end
	offered           func(*gateway.Capabilities) bool
	run               func(t *turn, args string) string
}

var slashes []*slash

func init() {
	always := func(*gateway.Capabilities) bool { return true }
	slashes = []*slash{
		{name: "/new", args: "[title]", about: "start a new session", offered: always, run: slashNew},
		{name: "/stop", about: "stop the running turn", outOfBand: true, offered: canStop, run: slashStop},
		{name: "/status", about: "show the session, the model and the gateway", outOfBand: true, offered: always, run: slashStatus},
		{name: "/model", args: "[name]", about: "list the models, or choose one", offered: offers("models"), run: slashModel},
		{name: "/sethome", about: "make this device the home channel", outOfBand: true, offered: always, run: slashHome},
		{name: "/help", about: "list the commands", outOfBand: true, offered: always, run: slashHelp},
	}
}

func offers(operation string) func(*gateway.Capabilities) bool {
	return func(c *gateway.Capabilities) bool { return c != nil && c.Offers(operation) }
}

// unknown answers an unknown command, which the gateway's API would pass to the model as text.
var unknown = &slash{outOfBand: true, run: slashUnknown}

// commandForm matches a command: a slash and one word. A path has more slashes and doesn't match.
var commandForm = regexp.MustCompile(`^/[A-Za-z][\w-]{0,31}$`)

// command returns the command of an input and its arguments, or nil if the input is no command.
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
	return "Unknown command " + name + ". Type /help for the list of commands."
}

func slashHome(t *turn, _ string) string {
	t.post(agent.Home{})
	return "This device is now the home channel. Deliveries to \"home\" arrive here."
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
		return "No turn is running."
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
			return "Model for the next turns: " + m.ID
		}
	}
	return "This gateway has no model " + name + ". Type /model for the list of models."
}

func slashHelp(t *turn, _ string) string {
	var b strings.Builder
	for _, c := range t.agent.commands() {
		fmt.Fprintf(&b, "- `%s` %s\n", strings.TrimSpace(c.Name+" "+c.Args), c.Description)
	}
	return strings.TrimSpace(b.String())
}

// commands returns the commands that the gateway supports.
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
