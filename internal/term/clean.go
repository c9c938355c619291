package term

import (
	"strings"
	"unicode"
)

// clean makes a text from outside safe for the terminal. Newlines stay, tabs become spaces, and every other control
// character becomes visible: nothing may hide in a command that a person is asked to allow.
func clean(s string) string {
	plain := true
	for _, r := range s {
		if r != '\n' && odd(r) || r == unicode.ReplacementChar {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r < 0x20: // its picture: ␛ for escape
			b.WriteRune(0x2400 + r)
		case r == 0x7f:
			b.WriteRune('␡')
		case odd(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r) // what is no UTF-8 comes out of range as U+FFFD
		}
	}
	return b.String()
}

// odd reports whether a character does something instead of showing something: controls of both kinds, line and
// paragraph separators, marks that turn the direction of writing, and tags. Joiners stay: emoji are made of them.
func odd(r rune) bool {
	switch {
	case unicode.IsControl(r), r == 0x2028, r == 0x2029:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r == 0xfeff, r >= 0xfff9 && r <= 0xfffb:
		return true
	}
	return false
}

// line is clean for a place that has one line.
func line(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }
