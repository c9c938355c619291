package demo

import "hermes-mobile/internal/chat"

// The three cards of the script.
var (
	approval = chat.Card{Kind: "exec_approval", Text: "May I run this command?", Command: "rm -rf build", Description: "Deletes the build folder", Options: []chat.Option{
		{ID: "once", Label: "Allow once", Style: "primary"}, {ID: "session", Label: "Allow for this session"},
		{ID: "always", Label: "Always allow"}, {ID: "deny", Label: "Deny", Style: "danger"}}}
	confirm = chat.Card{Kind: "slash_confirm", Text: "Start a new conversation? This one is kept, but I shall not remember it.", Options: []chat.Option{
		{ID: "once", Label: "Yes", Style: "primary"}, {ID: "always", Label: "Yes, and do not ask again"}, {ID: "cancel", Label: "Cancel"}}}
	clarify = chat.Card{Kind: "clarify", Text: "Which format?", Options: []chat.Option{
		{ID: "c0", Label: "CSV"}, {ID: "c1", Label: "JSON"}, {ID: "other", Label: "Something else"}}}
)

// cardText is what the agent says to an answer.
func cardText(c chat.Card, a chat.Answer) string {
	switch c.Kind {
	case "exec_approval":
		return "approval: " + a.OptionID
	case "slash_confirm":
		return "confirm: " + a.OptionID
	}
	if a.Expired {
		return "clarify: no answer"
	}
	if a.Text != "" {
		return "clarify: " + a.Text
	}
	for _, o := range c.Options {
		if o.ID == a.OptionID {
			return "clarify: " + o.Label
		}
	}
	return "clarify: " + a.OptionID
}
