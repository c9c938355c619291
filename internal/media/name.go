package media

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 255 // bytes: protocol §5, and what file systems take
	maxExt   = 32  // bytes; what is longer is hardly an extension
	noName   = "file"
	emptyExt = "."
)

// CleanName makes a file name harmless (protocol §5): what follows the last /
// or \, without control and direction characters, without blanks at its ends
// and dots at its beginning, invalid UTF-8 cut out, at most 255 bytes. What is
// too long is cut between two characters and keeps its extension. It is "file"
// when nothing is left. A name that is clean already comes back unchanged.
func CleanName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if unseen(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.TrimLeftFunc(name, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
	name = strings.TrimRightFunc(name, unicode.IsSpace)
	if len(name) > maxName {
		ext := path.Ext(name)
		if len(ext) > maxExt || ext == emptyExt {
			ext = ""
		}
		name = strings.TrimRightFunc(cut(name, maxName-len(ext)), unicode.IsSpace) + ext
	}
	if name == "" {
		return noName
	}
	return name
}

// unseen reports whether r could break a line or make a name read otherwise
// than it is: "exe.gpj" shown as "jpg.exe" backwards.
func unseen(r rune) bool {
	switch {
	case unicode.IsControl(r),
		r == '\u061c', r == '\u200e', r == '\u200f', // marks of direction
		r >= '\u202a' && r <= '\u202e', // embeddings and overrides
		r >= '\u2066' && r <= '\u2069', // isolates
		r == '\u2028', r == '\u2029',   // line and paragraph ends
		r == '\ufeff': // byte order mark
		return true
	}
	return false
}

// cut shortens s, valid UTF-8, to at most n bytes without splitting a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
