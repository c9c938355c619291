package relay

import (
	"strings"

	"hermes-mobile/internal/agent"
)

// refusedHome is what a person is told who sends /sethome to a newer gateway that knows the connection as "relay" only. For
// that name it refuses the command by design (relay-facts §8) and says no more than that nothing was saved, while our own
// home channel has moved.
const refusedHome = "This device is the server's home channel now: what is delivered to \"home\" comes here.\n\n" +
	"Hermes itself keeps no home channel on this connection. A scheduled job reports in the chat where it was made; to have jobs " +
	"report to a home channel, the owner adds the plug-in on Hermes' machine: hermes-mobile setup --plugin"

// setsHome reports whether an input makes its device the home channel.
func setsHome(in *agent.Input) bool { return in.Kind == agent.Text && command(in.Text) == "/sethome" }

// truthful puts our words in the place of a refusal of /sethome.
func (g *gateway) truthful(c *convo, a *action) {
	t := c.turnOf(a.replyID())
	if t != nil && t.home && g.version.all() && (g.known == "" || g.known == "relay") {
		a.Content = refusedHome
	}
}

// maxQuote is how much of a quoted text a gateway shows its model.
const maxQuote = 500

// withQuote puts what the person replies to before the words, in the form in which newer gateways do it: an older one reads
// no reply_to (relay-facts §5). Commands and answers to an open question must begin as they are.
func withQuote(text string, q *quoted) string {
	if command(text) != "" {
		return text
	}
	quote := q.Text
	if cut := []rune(quote); len(cut) > maxQuote {
		quote = string(cut[:maxQuote])
	}
	head := "[Replying to: \""
	if q.IsOwn {
		head = "[Replying to your previous message: \""
	}
	return strings.TrimRight(head+quote+"\"]\n\n"+text, "\n")
}
