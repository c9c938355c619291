package setup

import "strings"

// kind is the part of YAML syntax that a byte belongs to. It tells where a character is an
// indicator.
type kind byte

const (
	structure kind = iota // indicators, spaces, and plain scalars
	commented
	quoted
	blockText // the lines of a literal or folded scalar
	inFlow    // structure within brackets or braces
)

// kinds returns the kind of each byte of a text whose line breaks are "\n". The result is
// meaningful only for valid YAML.
func kinds(text string) []kind {
	s := &kindScanner{text: text, kinds: make([]kind, len(text))}
	for at := 0; at < len(text); {
		at = s.line(at)
	}
	return s.kinds
}

// kindScanner is the state of kinds.
type kindScanner struct {
	text  string
	kinds []kind
	flow  int
}

// mark sets the kind of the bytes from to to-1.
func (s *kindScanner) mark(from, to int, k kind) {
	for i := from; i < to; i++ {
		s.kinds[i] = k
	}
}

// line scans one line, and every scalar that begins on it and ends later. It returns the start of
// the next line.
func (s *kindScanner) line(start int) int {
	i, node, key := start, true, -1 // node: a node may begin here; key: the column of the line's innermost collection
	for i < len(s.text) && s.text[i] != '\n' {
		c := s.text[i]
		if s.flow > 0 {
			s.kinds[i] = inFlow
		}
		switch blankAfter := i+1 == len(s.text) || strings.IndexByte(" \t\n", s.text[i+1]) >= 0; {
		case c == ' ' || c == '\t':
		case c == '#' && (i == start || strings.IndexByte(" \t", s.text[i-1]) >= 0):
			end := lineEnd(s.text, i)
			s.mark(i, end, commented)
			return end
		case node && (c == '\'' || c == '"'):
			end := s.quote(i)
			s.mark(i, end, quoted)
			if key < 0 {
				key = i - start
			}
			i, node = end, false
			continue
		case node && (c == '&' || c == '!' || c == '*'):
			if key < 0 {
				key = i - start
			}
			for i+1 < len(s.text) && strings.IndexByte(" \t\n,[]{}", s.text[i+1]) < 0 {
				i++
			}
		case node && s.flow == 0 && (c == '-' || c == '?') && blankAfter:
			key = -1
		case node && s.flow == 0 && (c == '|' || c == '>'):
			if end, ok := s.block(start, i, key); ok {
				return end
			}
			node = false
		case (node || s.flow > 0) && (c == '[' || c == '{'):
			s.flow++
			s.kinds[i], node = inFlow, true
		case s.flow > 0 && (c == ']' || c == '}'):
			s.flow--
			node = false
		case s.flow > 0 && c == ',':
			node = true
		case c == ':' && (blankAfter || s.flow > 0 && strings.IndexByte(",[]{}", s.text[i+1]) >= 0 || i > start && s.kinds[i-1] == quoted):
			node = true
		default:
			if key < 0 {
				key = i - start
			}
			node = false
		}
		i++
	}
	return min(i+1, len(s.text))
}

// quote returns the end of the quoted scalar that begins at i.
func (s *kindScanner) quote(i int) int {
	q := s.text[i]
	for i++; i < len(s.text); i++ {
		switch {
		case q == '"' && s.text[i] == '\\':
			i++
		case s.text[i] != q:
		case q == '\'' && strings.HasPrefix(s.text[i:], "''"):
			i++
		default:
			return i + 1
		}
	}
	return len(s.text)
}

// block marks the lines of the block scalar whose indicator is at i. It returns the start of the
// line after them. It returns false if there is no block scalar at i.
func (s *kindScanner) block(start, i, key int) (int, bool) {
	head := strings.TrimRight(s.text[i+1:lineEnd(s.text, i)], "\n")
	if j := strings.Index(head, "#"); j > 0 {
		s.mark(i+1+j, i+1+len(head), commented)
		head = head[:j]
	}
	indent := 0
	for _, c := range strings.TrimRight(head, " \t") {
		switch {
		case c == '+' || c == '-':
		case c >= '1' && c <= '9':
			indent = int(c - '0')
		default:
			return 0, false
		}
	}
	parent := key
	if parent < 0 { // the whole document, or an item of a list: the last dash left of the indicator counts
		parent = strings.LastIndexAny(s.text[start:i], "-?")
	}
	if indent > 0 {
		indent += max(parent, 0)
	}
	at := lineEnd(s.text, i)
	for at < len(s.text) {
		end := lineEnd(s.text, at)
		l := strings.TrimRight(s.text[at:end], "\n")
		depth := len(l) - len(strings.TrimLeft(l, " "))
		switch {
		case strings.TrimLeft(l, " ") == "":
		case indent == 0 && depth > parent:
			indent = max(depth, 1)
		case depth < max(indent, parent+1):
			return at, true
		}
		s.mark(at, end, blockText)
		at = end
	}
	return at, true
}

// lineEnd returns the end of the line that contains i, including its line break.
func lineEnd(text string, i int) int {
	if j := strings.IndexByte(text[i:], '\n'); j >= 0 {
		return i + j + 1
	}
	return len(text)
}
