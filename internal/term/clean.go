package term

import (
	"strings"

	"hermes-mobile/frame"
)

// clean makes a text from outside safe for the terminal, by the rule of all clients
// (frame.Visible). Newlines stay, tabs become spaces, and characters that would control the
// terminal, or hide or reorder text, become visible marks.
func clean(s string) string {
	plain := true
	for i := range len(s) {
		if s[i] < ' ' && s[i] != '\n' || s[i] > '~' {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	return strings.ReplaceAll(frame.Visible(s).String(), "\t", "    ")
}

// line returns a clean text in one line.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
