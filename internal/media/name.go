package media

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName  = 255 // bytes: protocol §5, and what file systems take
	maxExt   = 32  // bytes; a longer one is hardly an extension
	noName   = "file"
	emptyExt = "."
)

// CleanName makes a file name harmless (doc/protocol.md §5). It keeps what follows the last / or \,
// and removes control and direction characters, spaces at the ends, leading dots, and invalid
// UTF-8. It cuts the name to 255 bytes between two characters, and keeps the extension. An empty
// result becomes "file". A clean name comes back unchanged.
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

// unseen reports whether r could break a line or make a name look different: "exe.gpj" displayed as
// "jpg.exe" backwards.
func unseen(r rune) bool {
	switch {
	case unicode.IsControl(r),
		r == '\u061c', r == '\u200e', r == '\u200f', // direction marks
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
