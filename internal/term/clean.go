package term

import (
	"strings"

	"hermes-mobile/frame"
)

// clean makes a text from outside safe for the terminal, by the rule that holds for all clients (frame.Visible): newlines
// stay, tabs become spaces, and what would steer the terminal, hide or turn the text becomes a visible mark.
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

// line is clean for a place that has one line.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
