package setup

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"hermes-mobile/internal/dotenv"
	"hermes-mobile/internal/plaintext"
)

// Of Hermes' .env only our own lines are changed.

// simple values need no quotes, whatever reads them.
var simple = regexp.MustCompile(`^[A-Za-z0-9_.:/@%+,=-]+$`)

// getenv returns the value that counts. An empty one counts as not set.
func getenv(text []byte, name string) (string, bool) {
	v, _ := dotenv.Get(string(text), name, os.LookupEnv)
	return v, v != ""
}

var errUnwritable = errors.New("the id or the secret has a sign that a .env cannot hold: choose others")

// EnvError is a .env in which no line can be written without a change to another.
type EnvError struct {
	Line int // the first that cannot be read; 0: there is none
	Name string
}

// Error says what to do.
func (e *EnvError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf(".env, line %d: a quote is not closed, so %s cannot be written below it: close the quote first", e.Line, e.Name)
	}
	return fmt.Sprintf(".env: %s cannot be written without a change to other lines: write it yourself", e.Name)
}

// setenv gives a variable a value: in its place where it stands, else at the end. Of several lines for it one is left.
func setenv(text []byte, name, value string) ([]byte, *Change, error) {
	old, there := getenv(text, name)
	if there && old == value {
		return text, nil, nil
	}
	written := value
	if !simple.MatchString(value) {
		if strings.ContainsAny(value, "'\\\r\n$\x00") {
			return nil, nil, errUnwritable
		}
		written = "'" + value + "'"
	}
	out, err := putenv(text, name, written)
	if err != nil {
		return nil, nil, err
	}
	return out, &Change{Key: name, Old: old, New: value}, nil
}

// putenv is setenv with a value as it is to be written.
func putenv(text []byte, name, written string) ([]byte, error) {
	s := string(text)
	mine := slices.DeleteFunc(dotenv.Lines(s, name), func(e dotenv.Entry) bool { return e.Bare })
	if len(mine) == 0 {
		eol := "\n"
		if i := strings.IndexByte(s, '\n'); i > 0 && s[i-1] == '\r' {
			eol = "\r\n"
		}
		if s != "" && s != plaintext.BOM && !strings.HasSuffix(s, "\n") {
			s += eol
		}
		s += name + "=" + written + eol
	} else {
		last := mine[len(mine)-1]
		if strings.HasPrefix(s[last.To:], "#") { // a comment right after a quote; after a plain value it would be part of it
			written += " "
		}
		s = s[:last.From] + written + s[last.To:]
	}
	// The last of several lines counts, and a name without a value takes back what stands above it.
	kept := false
	for _, e := range slices.Backward(dotenv.Lines(s, name)) {
		if e.Bare == kept {
			kept = kept || !e.Bare
			continue
		}
		s = s[:e.Start] + s[e.End:]
	}
	err := othersKept(string(text), s, name)
	if lines := dotenv.Lines(s, name); err == nil && (len(lines) == 0 || lines[len(lines)-1].Bare || s[lines[len(lines)-1].From:lines[len(lines)-1].To] != strings.TrimRight(written, " ")) {
		err = &EnvError{openQuote(s), name}
	}
	return []byte(s), err
}

// openQuote is the first line that cannot be read; 0: there is none.
func openQuote(text string) int {
	for _, e := range dotenv.Parse(text) {
		if e.Bad {
			return e.Line
		}
	}
	return 0
}

// unsetenv removes a variable.
func unsetenv(text []byte, name string) []byte {
	s := string(text)
	for _, e := range slices.Backward(dotenv.Lines(s, name)) {
		s = s[:e.Start] + s[e.End:]
	}
	if othersKept(string(text), s, name) != nil {
		return text
	}
	return []byte(s)
}

// othersKept makes sure that a text says of all other variables what it said before.
func othersKept(before, after, name string) error {
	others := func(text string) []dotenv.Entry {
		return slices.DeleteFunc(dotenv.Parse(text), func(e dotenv.Entry) bool { return e.Key == name || e.Bad })
	}
	a, b := others(before), others(after)
	if !slices.EqualFunc(a, b, func(a, b dotenv.Entry) bool { return a.Key == b.Key && a.Value == b.Value && a.Bare == b.Bare }) {
		return &EnvError{openQuote(before), name}
	}
	return nil
}
