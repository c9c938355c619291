package setup

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// dotenv is the text of Hermes' .env, of which only our own lines are read and changed.

// variable is one NAME=value of it.
type variable struct {
	name, value string
	start, end  int // of the whole, with its line end
	from, to    int // of the value as it is written
}

var (
	assignment = regexp.MustCompile(`^[ \t]*(?:export[ \t]+)?('[^'\n]+'|[^=#\s']+)[ \t]*=[ \t]*`)
	doubleText = regexp.MustCompile(`(?s)^"((?:\\.|[^"\\])*)"`)
	singleText = regexp.MustCompile(`(?s)^'((?:\\.|[^'\\])*)'`)
	tail       = regexp.MustCompile(`[ \t]+#.*`)
	nothing    = regexp.MustCompile(`^[ \t]*(?:#[^\n]*)?\r?(?:\n|$)`)
	simple     = regexp.MustCompile(`^[A-Za-z0-9_.:/@%+,=-]+$`)
)

// variables lists what a .env sets. A quoted value may go over several lines, which must not be taken for others.
func variables(text string) (list []variable) {
	for i := 0; i < len(text); {
		if i == 0 && strings.HasPrefix(text, bom) {
			i = len(bom)
		}
		m := assignment.FindStringSubmatch(text[i:])
		if m == nil {
			i = lineEnd(text, i)
			continue
		}
		v := variable{name: strings.Trim(m[1], "'"), start: i, from: i + len(m[0])}
		rest := text[v.from:]
		quoted := doubleText.FindStringSubmatch(rest)
		if quoted == nil {
			quoted = singleText.FindStringSubmatch(rest)
		}
		if quoted != nil {
			v.value, v.to = quoted[1], v.from+len(quoted[0])
			if !nothing.MatchString(text[v.to:]) { // Hermes' reader skips such a line, too
				i = lineEnd(text, v.to)
				continue
			}
		} else {
			raw := strings.TrimRight(text[v.from:lineEnd(text, v.from)], "\r\n")
			raw = strings.TrimRight(tail.ReplaceAllString(raw, ""), " \t")
			v.value, v.to = raw, v.from+len(raw)
		}
		v.end = lineEnd(text, v.to)
		list = append(list, v)
		i = v.end
	}
	return list
}

// lineEnd is where the line that holds i ends, its line end included.
func lineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j + 1
	}
	return len(text)
}

// getenv returns the value that counts: the last.
func getenv(text []byte, name string) (string, bool) {
	for _, v := range slices.Backward(variables(string(text))) {
		if v.name == name {
			return v.value, v.value != ""
		}
	}
	return "", false
}

var errUnwritable = errors.New("the id or the secret has a sign that a .env cannot hold: choose others")

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
	s := string(text)
	var mine []variable
	for _, v := range variables(s) {
		if v.name == name {
			mine = append(mine, v)
		}
	}
	c := &Change{Key: name, Old: old, New: value}
	if len(mine) == 0 {
		eol := "\n"
		if i := strings.IndexByte(s, '\n'); i > 0 && s[i-1] == '\r' {
			eol = "\r\n"
		}
		if s != "" && s != bom && !strings.HasSuffix(s, "\n") {
			s += eol
		}
		return []byte(s + name + "=" + written + eol), c, nil
	}
	last := mine[len(mine)-1]
	if strings.HasPrefix(s[last.to:], "#") { // a comment right after a quote; after a plain value it would be part of it
		written += " "
	}
	s = s[:last.from] + written + s[last.to:]
	for _, v := range slices.Backward(mine[:len(mine)-1]) {
		s = s[:v.start] + s[v.end:]
	}
	return []byte(s), c, nil
}

// unsetenv removes a variable.
func unsetenv(text []byte, name string) []byte {
	s := string(text)
	for _, v := range slices.Backward(variables(s)) {
		if v.name == name {
			s = s[:v.start] + s[v.end:]
		}
	}
	return []byte(s)
}
