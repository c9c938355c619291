package relay

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-json-experiment/json"

	"hermes-mobile/internal/agent"
)

const (
	maxOptions = 64
	// commandBudget is how much of a command a gateway puts on a card, in UTF-16 units or in
	// characters. It marks a cut with three dots.
	commandBudget = 1500
)

// promptCard returns the card of a prompt (doc/hermes/relay.md §5). Its id is ours, because the
// gateway's may be empty or come twice. A prompt without a usable option gives a card without options.
func promptCard(a *action) agent.Card {
	card := agent.Card{ID: agent.NewID(), Text: a.Content, Kind: a.PromptKind, Life: a.timeout()}
	seen := map[string]bool{}
	for _, o := range a.Options {
		if o.ID == "" || seen[o.ID] || len(card.Options) == maxOptions {
			continue
		}
		seen[o.ID] = true
		opt := agent.Option{ID: o.ID, Label: o.Label}
		if opt.Label == "" || rawKey(opt.Label) {
			opt.Label = plainLabel(opt.ID)
		}
		if o.Style == "primary" || o.Style == "danger" {
			opt.Style = o.Style
		}
		card.Options = append(card.Options, opt)
	}
	switch {
	case card.Kind == "clarify":
	case seen["deny"]:
		card.Kind = "exec_approval"
	case seen["cancel"]:
		card.Kind = "slash_confirm"
	}
	if card.Kind == "exec_approval" {
		card.Command, card.Description = splitApproval(card.Text)
	}
	card.Text = cardText(card)
	if card.Cut = cutShort(card.Command); card.Cut {
		card.Text += "\n\nHermes sent only the beginning of this command. " +
			"The rest, after the dots at its end, is not known here, and runs too if you allow it."
	}
	return card
}

// splitApproval returns the command and the reason in the text of an approval. The command is the
// fenced block. The reason is the text after it, up to a blank line. The words around them are
// translated, or raw translation keys, and are left out where their shape shows that.
func splitApproval(text string) (command, reason string) {
	_, rest, ok := strings.Cut(text, "```")
	if !ok {
		return "", ""
	}
	i := strings.LastIndex(rest, "```")
	if i < 0 {
		return "", ""
	}
	block, after := rest[:i], rest[i+3:]
	if first, body, ok := strings.Cut(block, "\n"); ok && !strings.Contains(first, " ") {
		block = body // the line of the fence, perhaps with a language
	}
	after = strings.TrimSpace(after)
	reason, _, _ = strings.Cut(after, "\n\n")
	if label, words, ok := strings.Cut(reason, ": "); ok && !strings.ContainsAny(label, " \n") {
		reason = words
	}
	return strings.Trim(block, "\r\n"), strings.TrimSpace(reason)
}

// cutShort reports whether the gateway seems to have cut a command.
func cutShort(command string) bool {
	return strings.HasSuffix(command, "...") && len(utf16.Encode([]rune(command))) >= commandBudget
}

// rawKey reports whether a text is a translation key. A gateway without its translations says
// "gateway.exec_approval.action_once" instead of "Allow once".
func rawKey(s string) bool {
	dots := 0
	for i, r := range s {
		switch {
		case r == '.':
			dots++
		case r != '_' && (r < 'a' || r > 'z') && (i == 0 || r < '0' || r > '9'):
			return false
		}
	}
	return dots > 0
}

// plainLabel is the label of an option for which the gateway has none. The ids are those of
// doc/hermes/relay.md §5.
func plainLabel(id string) string {
	switch id {
	case "once":
		return "Yes, this once"
	case "session":
		return "Yes, for this session"
	case "always":
		return "Yes, always"
	case "deny":
		return "No"
	case "cancel":
		return "Cancel"
	case "other":
		return "Something else"
	}
	return id
}

// cardText is the question without what the card shows elsewhere: the text of an approval ends
// before its command, and lines that are only a translation key are left out.
func cardText(card agent.Card) string {
	text := card.Text
	if card.Command != "" {
		text, _, _ = strings.Cut(text, "```")
	}
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || !rawKey(words[len(words)-1]) || len(words) > 2 {
			lines = append(lines, line)
		}
	}
	if text = strings.TrimSpace(strings.Join(lines, "\n")); text != "" {
		return text
	}
	if card.Command != "" {
		return "May I run this command?"
	}
	return strings.TrimSpace(card.Text)
}

// choiceNumber is the number of a clarify card's choice in its list, from 1 on, or 0 if the option
// is no choice.
func choiceNumber(option string) int {
	digits, ok := strings.CutPrefix(option, "c")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || n >= maxOptions {
		return 0
	}
	return n + 1
}

func hasOption(card agent.Card, id string) bool {
	for _, o := range card.Options {
		if o.ID == id {
			return true
		}
	}
	return false
}

// cardState is Card.State: what an answer needs after a restart of the server.
type cardState struct {
	Gateway  string `json:"g"`
	Chat     string `json:"c"`
	Prompt   string `json:"p"`
	Nonce    string `json:"n"`
	Kind     string `json:"k"`
	User     string `json:"u"`
	UserName string `json:"un"`
	Name     string `json:"dn"`
	Profile  string `json:"pr,omitzero"`
}

func parseCardState(b []byte) (st cardState, err error) {
	if err = json.Unmarshal(b, &st); err == nil && (st.Gateway == "" || st.Chat == "") {
		err = errors.New("relay: card state names no gateway or no chat")
	}
	return st, err
}

// nonceOf is the part of a prompt id that names the process of the gateway (doc/hermes/relay.md §5).
func nonceOf(promptID string) string {
	nonce, _, ok := strings.Cut(promptID, ".")
	if !ok {
		return ""
	}
	return nonce
}
