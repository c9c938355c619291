// Package dotenv parses Hermes' .env as Hermes does. Hermes uses python-dotenv (1.2.2 in its
// releases 0.19 and 0.22). Both programs must see the same values, so this package has the same
// grammar, expression by expression.
//
// Each entry has its position in the text, so that a program can edit one and keep all others byte
// for byte.
package dotenv

import (
	"regexp"
	"slices"
	"strings"

	"hermes-mobile/internal/plaintext"
)

// Entry is one variable of a file, or an unreadable line.
type Entry struct {
	Key   string
	Value string // without quotes and escapes, but with ${NAME}, see [Expand]
	Bare  bool   // a key without "=", which sets nothing
	Bad   bool   // unreadable: python-dotenv skips it
	Line  int    // of the key, from 1

	Start, End int // byte offsets of the whole entry, its line end included
	From, To   int // byte offsets of the value as written, its quotes included; equal if it is empty
}

// Go's regexp prefers the leftmost alternative, as Python's does. Only \s differs: Python's covers
// Unicode.
const (
	blank     = `[\s\v\x1c-\x1f\x{85}\p{Z}]`
	blankLine = `[\t\v\f\x1c-\x1f\x{85}\p{Z}]` // blank without line ends
)

var (
	reSpaceAny  = regexp.MustCompile(`^` + blank + `*`)
	reSpace     = regexp.MustCompile(`^` + blankLine + `*`)
	reExport    = regexp.MustCompile(`^(?:export` + blankLine + `+)?`)
	reQuotedKey = regexp.MustCompile(`^'([^']+)'`)
	reKey       = regexp.MustCompile(`^([^=#\s\v\x1c-\x1f\x{85}\p{Z}]+)`)
	reEqual     = regexp.MustCompile(`^=` + blankLine + `*`)
	reSingle    = regexp.MustCompile(`^'((?:\\'|[^'])*)'`)
	reDouble    = regexp.MustCompile(`^"((?:\\"|[^"])*)"`)
	reUnquoted  = regexp.MustCompile(`^[^\r\n]*`)
	reComment   = regexp.MustCompile(`^(?:` + blankLine + `*#[^\r\n]*)?`)
	reEnd       = regexp.MustCompile(`^` + blankLine + `*(?:\r\n|\n|\r|$)`)
	reRest      = regexp.MustCompile(`^[^\r\n]*(?:\r\n|\n|\r)?`)
	reTail      = regexp.MustCompile(blank + `+#.*`)
	reLineEnd   = regexp.MustCompile(`\r\n|\n|\r`)
	reEscDouble = regexp.MustCompile(`\\[\\'"abfnrtv]`)
	reEscSingle = regexp.MustCompile(`\\[\\']`)
	reExpand    = regexp.MustCompile(`\$\{([^}:]*)(?::-([^}]*))?\}`)
)

var escapes = map[byte]string{'\\': `\`, '\'': `'`, '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}

// reader scans a text.
type reader struct {
	text string
	at   int
	line int
}

// take consumes the match of re at the current position. It returns the first group, or the whole
// match if re has no groups.
func (r *reader) take(re *regexp.Regexp) (string, bool) {
	m := re.FindStringSubmatch(r.text[r.at:])
	if m == nil {
		return "", false
	}
	r.at += len(m[0])
	r.line += len(reLineEnd.FindAllString(m[0], -1))
	return m[len(m)-1], true
}

func (r *reader) next(prefix string) bool { return strings.HasPrefix(r.text[r.at:], prefix) }

// Parse returns the entries of a file in order, without comments and blank lines. It never fails:
// an unreadable line is an entry with Bad set.
func Parse(text string) []Entry {
	r := &reader{text: text, line: 1}
	if r.next(plaintext.BOM) {
		r.at = len(plaintext.BOM)
	}
	var all []Entry
	for {
		r.take(reSpaceAny)
		if r.at == len(text) {
			return all
		}
		start, line := r.at, r.line
		e, ok := r.entry()
		if !ok {
			r.take(reRest)
			e = Entry{Bad: true}
		}
		if e.Start, e.End, e.Line = start, r.at, line; e.Key != "" || e.Bad {
			all = append(all, e)
		}
	}
}

func (r *reader) entry() (e Entry, ok bool) {
	r.take(reExport)
	switch {
	case r.next("#"):
	case r.next("'"):
		if e.Key, ok = r.take(reQuotedKey); !ok {
			return e, false
		}
	default:
		if e.Key, ok = r.take(reKey); !ok {
			return e, false
		}
	}
	r.take(reSpace)
	if r.next("=") {
		r.take(reEqual)
		e.From = r.at
		if e.Value, e.To, ok = r.value(); !ok {
			return e, false
		}
	} else {
		e.Bare = true
	}
	r.take(reComment)
	_, ok = r.take(reEnd)
	return e, ok
}

// value parses a value and returns its end in the text.
func (r *reader) value() (value string, end int, ok bool) {
	switch {
	case r.next("'"):
		value, ok = r.take(reSingle)
		return unescape(reEscSingle, value), r.at, ok
	case r.next(`"`):
		value, ok = r.take(reDouble)
		return unescape(reEscDouble, value), r.at, ok
	case r.at == len(r.text) || r.next("\n") || r.next("\r"):
		return "", r.at, true
	}
	from := r.at
	raw, ok := r.take(reUnquoted)
	value = strings.TrimRightFunc(reTail.ReplaceAllString(raw, ""), isBlank)
	if strings.HasPrefix(raw, value) {
		return value, from + len(value), ok
	}
	return value, r.at, ok
}

// isBlank is Python's str.isspace.
func isBlank(c rune) bool { return reSpaceOne.MatchString(string(c)) }

var reSpaceOne = regexp.MustCompile(`^` + blank + `$`)

func unescape(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return escapes[m[1]] })
}

// Expand replaces ${NAME} and ${NAME:-default}, as python-dotenv does in values of every kind.
func Expand(s string, lookup func(name string) (string, bool)) string {
	return reExpand.ReplaceAllStringFunc(s, func(m string) string {
		g := reExpand.FindStringSubmatch(m)
		if v, ok := lookup(g[1]); ok {
			return v
		}
		return g[2]
	})
}

// Get returns the value of a variable as Hermes sees it: the value of its last line, with ${NAME}
// expanded from earlier lines, or else from environ. environ may be nil.
func Get(text, name string, environ func(string) (string, bool)) (string, bool) {
	set := map[string]string{}
	lookup := func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		if environ == nil {
			return "", false
		}
		return environ(name)
	}
	bare := false
	for _, e := range Parse(text) {
		if e.Bad {
			continue
		}
		value := "" // a name without a value is empty for the lines below it
		if !e.Bare {
			value = Expand(e.Value, lookup)
		}
		set[e.Key] = value
		if e.Key == name {
			bare = e.Bare
		}
	}
	v, ok := set[name]
	return v, ok && !bare
}

// Lines returns the entries of one variable.
func Lines(text, name string) []Entry {
	return slices.DeleteFunc(Parse(text), func(e Entry) bool { return e.Bad || e.Key != name })
}
