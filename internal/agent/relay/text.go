package relay

import (
	"regexp"
	"strings"
)

// What can be told from the texts of a gateway by their shape. Words are never matched, because
// gateways translate them.

// cursor is the default of streaming.cursor, after a space (doc/hermes/relay.md §2).
const cursor = "▉"

// maxPrefix bounds the explanation that a gateway puts before a text that it repeats, in bytes.
const maxPrefix = 400

// cutCursor removes a streaming cursor from the end of a text, and reports whether there was one.
func cutCursor(text string) (string, bool) {
	if cutText, ok := strings.CutSuffix(text, cursor); ok {
		return strings.TrimSuffix(cutText, " "), true
	}
	return text, false
}

// interimText returns what is shown of a message that is not final: without the blank lines that may
// be before it until its last edit, and without a last line that is or becomes "MEDIA:/path"
// (doc/hermes/relay.md §4).
func interimText(text string) string {
	text = strings.TrimLeft(text, "\r\n")
	i := strings.LastIndexByte(text, '\n') + 1
	const tag = "MEDIA:"
	if line := text[i:]; strings.HasPrefix(line, tag) || len(line) >= 2 && strings.HasPrefix(tag, line) {
		text = text[:i]
	}
	return strings.TrimRight(text, " \t\r\n")
}

// finalText returns a text without the blank lines that a gateway may leave before it.
func finalText(text string) string { return strings.TrimLeft(text, "\r\n") }

// isRecovered reports whether a text is a reply that the gateway sends again.
func isRecovered(text string) bool { return strings.HasPrefix(text, "♻") }

// asksInWords reports whether a text of an older gateway is a question by its shape: it begins with
// this mark, or names the command that answers it. Neither is translated.
func asksInWords(text string) bool {
	return strings.HasPrefix(text, "❓") || strings.Contains(text, "/approve")
}

// command returns the command that a text begins with, in lower case, or "".
func command(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.HasPrefix(word, "/") {
		return strings.ToLower(word)
	}
	return ""
}

// ownID matches the ids that this agent gives its messages.
var ownID = regexp.MustCompile(`^[0-9a-f]{18}$`)

// maxQuote is how many characters of a quoted text a gateway shows its model.
const maxQuote = 500

// withQuote puts the quoted text before the user's text, in the form in which newer gateways do it:
// older ones ignore reply_to (doc/hermes/relay.md §5). A command must begin the text, so it gets no
// quote.
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
