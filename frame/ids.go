package frame

import (
	"unicode"
	"unicode/utf8"
)

// ValidMessageID reports whether id can name a message: 1 to [MaxID] printable characters
// (doc/protocol.md §3).
func ValidMessageID(id string) bool {
	if id == "" || utf8.RuneCountInString(id) > MaxID {
		return false
	}
	for _, r := range id {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// ValidID reports whether id can name a device or a user: 1 to [MaxID] characters of
// A-Z a-z 0-9 . _ - : @ (doc/protocol.md §2).
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		c := id[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '-', c == ':', c == '@':
		default:
			return false
		}
	}
	return true
}

// CleanName makes a name fit for display: it removes what does not show as itself (see [Strip]) and
// keeps at most [MaxName] characters.
func CleanName(s string) string {
	s = Strip(s)
	n := 0
	for i := range s {
		if n++; n > MaxName {
			return Strip(s[:i]) // the cut may have split an emoji
		}
	}
	return s
}
