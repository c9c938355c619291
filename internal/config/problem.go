package config

import (
	"fmt"
	"strings"
)

// BadValue is a setting that prevents the start. [Load] reports all of them at once, joined with
// errors.Join.
type BadValue struct {
	Key     string // as written at Where, such as MOBILE_PORT
	Value   string // empty for a secret
	Where   string // such as "environment" or "in ~/.hermes/.env, line 3"
	Problem string // the problem and its fix
}

// Error returns one line with the key, the value, the place, the problem, and the fix.
func (e *BadValue) Error() string {
	var b strings.Builder
	b.WriteString(e.Key)
	if e.Value != "" {
		fmt.Fprintf(&b, ": %q", shorten(e.Value))
	}
	if e.Where != "" {
		fmt.Fprintf(&b, " (%s)", e.Where)
	}
	// A problem continues the sentence after the value ("is not a port"), or is a sentence of its own that
	// starts with a colon.
	if !strings.HasPrefix(e.Problem, ":") {
		b.WriteByte(' ')
	}
	b.WriteString(e.Problem)
	return b.String()
}

// Warning is a probable mistake or a risk that does not prevent the start.
type Warning struct {
	Key   string // the setting or file; may be empty
	Where string // the place; may be empty
	Text  string // the whole sentence, with Key and Where
	File  string // a file that others can read; otherwise empty
	Plain bool   // warns about unencrypted connections, which an owner may want
}

// String returns the whole sentence.
func (w Warning) String() string { return w.Text }

// problem is the error of a check: the problem and its fix, without the key and the place, which a check
// does not know.
type problem struct {
	text string
	hide bool // the value may contain a password: do not show it
}

func (p *problem) Error() string { return p.text }

func problemf(format string, args ...any) error {
	return &problem{text: fmt.Sprintf(format, args...)}
}

// shorten limits the length of a quoted value, in case someone pasted a whole file.
func shorten(s string) string {
	const most = 120
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// orList formats "a, b, or c".
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	if last == 1 {
		return words[0] + " or " + words[1]
	}
	return strings.Join(words[:last], ", ") + ", or " + words[last]
}
