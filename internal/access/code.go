package access

import (
	"crypto/rand"
	"strings"
	"unicode"
)

// codeAlphabet is A-Z and 2-9 without the letters that look like digits. Its 32 characters take
// five bits each, so no character is more likely than another.
const codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

const codeLength = 8

// NewCode returns a code of 8 characters of A-Z2-9 without O, I, 0 and 1: 40 random bits, for
// pairing and approval codes (doc/protocol.md §8).
func NewCode() string {
	var b [codeLength]byte
	rand.Read(b[:]) // never returns an error
	for i := range b {
		b[i] = codeAlphabet[int(b[i])%len(codeAlphabet)]
	}
	return string(b[:])
}

// FormatCode formats a code as 7KQ4-M2XD, which is easier to read out. Don't use it for codes that
// a user may give to Hermes' own commands, which reject the dash. A text of another length stays as
// it is.
func FormatCode(code string) string {
	if len(code) != codeLength {
		return code
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// NormalizeCode normalizes a code that a person typed: upper case, without spaces and dashes of any
// kind (phone keyboards make long ones).
func NormalizeCode(typed string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '\u2212' {
			return -1
		}
		return unicode.ToUpper(r)
	}, typed)
}

// ValidCode reports whether a normalized code has the form of NewCode's.
func ValidCode(code string) bool {
	return len(code) == codeLength && strings.Trim(code, codeAlphabet) == ""
}
