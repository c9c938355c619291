package config

import (
	"fmt"
	"strings"
)

// A BadValue is a setting that stops the start. [Load] reports all of them at
// once, joined with errors.Join.
type BadValue struct {
	Key     string // as it is written at Where, such as MOBILE_PORT
	Value   string // empty for a secret
	Where   string // such as "environment" or "in ~/.hermes/.env, line 3"
	Problem string // what is wrong, and what to do
}

// Error returns one line with key, value, place, problem and remedy.
func (e *BadValue) Error() string {
	var b strings.Builder
	b.WriteString(e.Key)
	if e.Value != "" {
		fmt.Fprintf(&b, ": %q", shorten(e.Value))
	}
	if e.Where != "" {
		fmt.Fprintf(&b, " (%s)", e.Where)
	}
	// A problem is a phrase that goes on after the value ("is not a port"), or
	// a sentence of its own, which starts with a colon.
	if !strings.HasPrefix(e.Problem, ":") {
		b.WriteByte(' ')
	}
	b.WriteString(e.Problem)
	return b.String()
}

// A Warning is something that is probably a mistake, or a risk, and does not
// stop the start.
type Warning struct {
	Key   string // the setting or file it is about, may be empty
	Where string // where that was found, may be empty
	Text  string // the whole sentence, Key and Where included
	File  string // that others can read, where it is about that
	Plain bool   // it is about words that go over a network unencrypted, which an owner may want
}

// String returns the whole sentence.
func (w Warning) String() string { return w.Text }

// A problem is what a check returns: what is wrong with a value and what to do,
// without the key and the place, which a check does not know.
type problem struct {
	text string
	hide bool // the value may hold a password: do not show it
}

func (p *problem) Error() string { return p.text }

func problemf(format string, args ...any) error {
	return &problem{text: fmt.Sprintf(format, args...)}
}

// shorten keeps a whole pasted file out of an error line.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// orList writes "a, b or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
