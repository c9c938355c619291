package config

import (
	"regexp"
	"strings"
)

// A binding is one entry of a .env file.
type binding struct {
	key   string
	value string
	bare  bool // a key without "=": python-dotenv sets nothing
	line  int  // where the key stands, from 1
	bad   bool // not readable; value is the text that was skipped
}

// The grammar is python-dotenv's (dotenv/parser.py, 1.2), expression by expression,
// because Hermes reads the same file with it and must see the same values. Go's
// regexp prefers the leftmost alternatives like Python's, and only \s differs:
// Python's covers Unicode.
const (
	blank     = `[\s\v\x1c-\x1f\x{85}\p{Z}]`
	blankLine = `[\t\v\f\x1c-\x1f\x{85}\p{Z}]` // blank without line ends
)

var (
	reSpaceAny   = regexp.MustCompile(`^` + blank + `*`)
	reSpace      = regexp.MustCompile(`^` + blankLine + `*`)
	reExport     = regexp.MustCompile(`^(?:export` + blankLine + `+)?`)
	reQuotedKey  = regexp.MustCompile(`^'([^']+)'`)
	reKey        = regexp.MustCompile(`^([^=#\s\v\x1c-\x1f\x{85}\p{Z}]+)`)
	reEqual      = regexp.MustCompile(`^(=` + blankLine + `*)`)
	reSingle     = regexp.MustCompile(`(?s)^'((?:\\.|[^'\\])*)'`)
	reDouble     = regexp.MustCompile(`(?s)^"((?:\\.|[^"\\])*)"`)
	reUnquoted   = regexp.MustCompile(`^([^\r\n]*)`)
	reComment    = regexp.MustCompile(`^(?:` + blankLine + `*#[^\r\n]*)?`)
	reEnd        = regexp.MustCompile(`^` + blankLine + `*(?:\r\n|\n|\r|$)`)
	reRest       = regexp.MustCompile(`^[^\r\n]*(?:\r\n|\n|\r)?`)
	reTail       = regexp.MustCompile(blank + `+#.*`)
	reLineEnd    = regexp.MustCompile(`\r\n|\n|\r`)
	reEscDouble  = regexp.MustCompile(`\\[\\'"abfnrtv]`)
	reEscSingle  = regexp.MustCompile(`\\[\\']`)
	reExpand     = regexp.MustCompile(`\$\{([^}:]*)(?::-([^}]*))?\}`)
	escapeValues = map[byte]string{'\\': `\`, '\'': `'`, '"': `"`, 'a': "\a", 'b': "\b",
		'f': "\f", 'n': "\n", 'r': "\r", 't': "\t", 'v': "\v"}
)

// A dotenvReader walks over the text of a .env file.
type dotenvReader struct {
	rest string
	line int
}

// take consumes what re matches at the current place and returns its first
// group, or the whole match if it has none.
func (r *dotenvReader) take(re *regexp.Regexp) (string, bool) {
	m := re.FindStringSubmatch(r.rest)
	if m == nil {
		return "", false
	}
	r.rest = r.rest[len(m[0]):]
	r.line += len(reLineEnd.FindAllString(m[0], -1))
	return m[len(m)-1], true
}

// parseDotenv returns the entries of a .env file in order. It never fails:
// python-dotenv skips a line that it cannot read, so such a line becomes a
// binding marked bad.
func parseDotenv(text string) []binding {
	r := &dotenvReader{rest: strings.TrimPrefix(text, "\ufeff"), line: 1}
	var all []binding
	for {
		r.take(reSpaceAny)
		if r.rest == "" {
			return all
		}
		start, line := r.rest, r.line
		b, ok := r.binding()
		if !ok {
			r.take(reRest)
			b = binding{bad: true, value: start[:len(start)-len(r.rest)]}
		}
		b.line = line
		if b.key != "" || b.bad {
			all = append(all, b)
		}
	}
}

func (r *dotenvReader) binding() (b binding, ok bool) {
	r.take(reExport)
	switch {
	case strings.HasPrefix(r.rest, "#"):
	case strings.HasPrefix(r.rest, "'"):
		b.key, ok = r.take(reQuotedKey)
		if !ok {
			return b, false
		}
	default:
		if b.key, ok = r.take(reKey); !ok {
			return b, false
		}
	}
	r.take(reSpace)
	if strings.HasPrefix(r.rest, "=") {
		// "A= # text" is a comment, "A=#text" a value. Older versions of
		// python-dotenv take both as values; Hermes may have either.
		sign, _ := r.take(reEqual)
		if len(sign) == 1 || !strings.HasPrefix(r.rest, "#") {
			if b.value, ok = r.value(); !ok {
				return b, false
			}
		}
	} else {
		b.bare = true
	}
	r.take(reComment)
	_, ok = r.take(reEnd)
	return b, ok
}

func (r *dotenvReader) value() (string, bool) {
	switch {
	case strings.HasPrefix(r.rest, "'"):
		v, ok := r.take(reSingle)
		return unescape(reEscSingle, v), ok
	case strings.HasPrefix(r.rest, `"`):
		v, ok := r.take(reDouble)
		return unescape(reEscDouble, v), ok
	case r.rest == "" || r.rest[0] == '\n' || r.rest[0] == '\r':
		return "", true
	}
	v, ok := r.take(reUnquoted)
	return strings.TrimSpace(reTail.ReplaceAllString(v, "")), ok
}

func unescape(re *regexp.Regexp, s string) string {
	return re.ReplaceAllStringFunc(s, func(m string) string { return escapeValues[m[1]] })
}

// expand replaces ${NAME} and ${NAME:-default}, in quoted values too, as
// python-dotenv does.
func expand(s string, lookup func(string) (string, bool)) string {
	return reExpand.ReplaceAllStringFunc(s, func(m string) string {
		g := reExpand.FindStringSubmatch(m)
		if v, ok := lookup(g[1]); ok {
			return v
		}
		return g[2]
	})
}
