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

// Setup changes only its own lines of Hermes' .env.

// simple matches values that need no quotes for any reader.
var simple = regexp.MustCompile(`^[A-Za-z0-9_.:/@%+,=-]+$`)

// getenv returns the effective value. An empty value counts as not set.
func getenv(text []byte, name string) (string, bool) {
	v, _ := dotenv.Get(string(text), name, os.LookupEnv)
	return v, v != ""
}

var errUnwritable = errors.New("the id or the secret contains a character that .env can't hold: use others")

// EnvError is the error for a .env in which setup can't write a line without changing another.
type EnvError struct {
	Line int // the first unreadable line; 0: none
	Name string
}

// Error describes the problem and the fix.
func (e *EnvError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf(".env, line %d: unclosed quote, so setup can't write %s below it: close the quote first", e.Line, e.Name)
	}
	return fmt.Sprintf(".env: setup can't write %s without changing other lines: write it yourself", e.Name)
}

// setenv sets a variable: in place if it exists, otherwise at the end. It removes duplicate lines.
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

// putenv is setenv with the value as written, quotes included.
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
		if strings.HasPrefix(s[last.To:], "#") { // a comment right after a quote would become part of a plain value
			written += " "
		}
		s = s[:last.From] + written + s[last.To:]
	}
	// The last line counts, and a name without a value clears the lines above it.
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

// openQuote returns the first unreadable line, or 0.
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

// othersKept checks that all other variables are unchanged.
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
