package access

import (
	"crypto/rand"
	"strings"
	"unicode"
)

// codeAlphabet is A-Z and 2-9 without the letters that look like digits. Its 32
// characters take five bits each, so no value of a random byte is favoured.
const codeAlphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

const codeLength = 8

// NewCode makes a code of 8 characters of A-Z2-9 without O, I, 0 and 1: 40
// random bits, for pairing and for one-time links (protocol §8).
func NewCode() string {
	var b [codeLength]byte
	rand.Read(b[:]) // never fails, it ends the process instead (crypto/rand)
	for i := range b {
		b[i] = codeAlphabet[int(b[i])%len(codeAlphabet)]
	}
	return string(b[:])
}

// FormatCode writes a code as 7KQ4-M2XD, which is easier to read out. Do not
// use it for codes that Hermes' own commands may be given: they do not take
// the dash. What is not 8 characters long stays as it is.
func FormatCode(code string) string {
	if len(code) != codeLength {
		return code
	}
	return code[:codeLength/2] + "-" + code[codeLength/2:]
}

// NormalizeCode takes what a human typed for what was shown: upper case,
// without spaces and dashes of any sort (keyboards of phones make long ones).
func NormalizeCode(typed string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || r == '\u2212' {
			return -1
		}
		return unicode.ToUpper(r)
	}, typed)
}

// ValidCode says whether a normalized code has the form of NewCode's.
func ValidCode(code string) bool {
	return len(code) == codeLength && strings.Trim(code, codeAlphabet) == ""
}
