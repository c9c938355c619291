package term

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
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

var reference = regexp.MustCompile(`&#([xX][0-9a-fA-F]{1,8}|[0-9]{1,10});?`)

// noReferences replaces the references of markdown that stand for a control character: its reader would make the
// character itself of them.
func noReferences(s string) string {
	if !strings.Contains(s, "&#") {
		return s
	}
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		digits, base := strings.TrimSuffix(ref[2:], ";"), 10
		if digits[0] == 'x' || digits[0] == 'X' {
			digits, base = digits[1:], 16
		}
		if n, err := strconv.ParseUint(digits, base, 32); err != nil || n > unicode.MaxRune || odd(rune(n)) {
			return "\uFFFD"
		}
		return ref
	})
}

// onlyColours lets the colours of rendered markdown through (CSI … m) and no other sequence.
func onlyColours(s string) string {
	var b strings.Builder
	var state byte
	for len(s) > 0 {
		seq, width, n, next := ansi.DecodeSequence(s, state, nil)
		switch {
		case width > 0, seq == "\n":
			b.WriteString(seq)
		case len(seq) > 2 && strings.HasPrefix(seq, "\x1b[") && strings.HasSuffix(seq, "m") && strings.Trim(seq[2:len(seq)-1], "0123456789;:") == "":
			b.WriteString(seq)
		case len(seq) > 0 && seq[0] >= 0x20 && seq[0] != 0x7f && !odd([]rune(seq)[0]): // no width, but no control: a mark
			b.WriteString(seq)
		}
		s, state = s[n:], next
	}
	return b.String()
}
