package setup

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// want is one value that config.yaml must have.
type want struct {
	path []string
	text string // the value in YAML
	// also lists other values that mean the same to Hermes.
	also []string
	item bool // the text is an item of a list, which may have other items
}

func (w want) key() string { return strings.Join(w.path, ".") }

// Change is one key that setup changes.
type Change struct {
	Key string `json:"key"`
	Old string `json:"old,omitempty"` // the old text in YAML; empty if the key was missing
	New string `json:"new"`
	// Line is the line of the key if setup changes text on that line. It is 0 if setup adds whole
	// lines.
	Line int `json:"line,omitempty"`
	// From is the index of the first element of the key's path that setup adds, or -1 if all exist.
	From int `json:"from"`
	// Item reports whether the value is an item of a list.
	Item bool `json:"item,omitempty"`
	// text holds the added lines, if setup adds whole lines.
	text []string
}

// ByHand is the error for an edit that would risk the rest of the file.
type ByHand struct {
	Key, Value string
	Line       int
	Reason     string
}

// Error returns the reason, and the line that the owner must add.
func (e *ByHand) Error() string {
	return fmt.Sprintf("config.yaml, line %d: %s; add it yourself: %s: %s", e.Line, e.Reason, e.Key, e.Value)
}

// candidate is an edited text that may be correct. verify decides.
type candidate struct {
	lines  []string
	change Change
}

// apply sets one value. The change is nil if the value is already set.
func apply(text []byte, w want) ([]byte, *Change, error) {
	d, err := parse(text)
	if err != nil {
		return nil, nil, err
	}
	if d.has(w) {
		return text, nil, nil
	}
	list, err := d.candidates(w)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range list {
		out := d.bytes(c.lines)
		if verify(text, out, w) == nil {
			return out, &c.change, nil
		}
	}
	return nil, nil, &ByHand{w.key(), w.text, d.near(w.path), "setup can't set this key without changing others (because of an anchor, an alias, or an unusual form)"}
}

// near returns the line of the last existing key of a path.
func (d *document) near(path []string) int {
	n, l := d.root, 1
	for _, key := range path {
		list, _ := entriesOf(n)
		_, e := find(list, key)
		if e == nil {
			break
		}
		n, l = e.Value, line(e)
	}
	return l
}

// has reports whether the document already has a value.
func (d *document) has(w want) bool {
	v, ok := lookup(d.value, w.path)
	if !ok {
		return false
	}
	if w.item {
		list, _ := v.([]any)
		return slices.Contains(list, any(unquoted(w.text)))
	}
	if w.matches(v) {
		return true
	}
	// Hermes reads YAML 1.1, where an unquoted yes or off is a boolean.
	s, _ := v.(string)
	return truth(s) != "" && truth(s) == w.text && d.plain(w.path)
}

// matches reports whether a decoded value equals the wanted one.
func (w want) matches(v any) bool {
	s := fmt.Sprint(v)
	if _, isText := v.(string); isText == (w.text == "true" || w.text == "false") {
		return slices.Contains(w.also, s) // Hermes reads "true" as text, and true as a boolean
	}
	return s == unquoted(w.text) || slices.Contains(w.also, s)
}

// truth returns "true" or "false" for a boolean that only YAML 1.1 knows, otherwise an empty
// string.
func truth(s string) string {
	switch strings.ToLower(s) {
	case "yes", "on":
		return "true"
	case "no", "off":
		return "false"
	}
	return ""
}

// plain reports whether a value has no quotes in the text.
func (d *document) plain(path []string) bool {
	n := d.root
	for _, key := range path {
		list, _ := entriesOf(n)
		_, e := find(list, key)
		if e == nil {
			return false
		}
		n = e.Value
	}
	return n != nil && n.GetToken().Type == token.StringType
}

func unquoted(s string) string { return strings.Trim(s, `"`) }

// candidates returns the possible edits that set a value, the best first.
func (d *document) candidates(w want) ([]candidate, error) {
	if d.root == nil {
		return d.appendTop(w), nil
	}
	n, limit := d.root, d.end
	for i, key := range w.path {
		list, flow := entriesOf(n)
		j, e := find(list, key)
		if e == nil {
			return d.insert(n, list, flow, limit, w, i), nil
		}
		if j+1 < len(list) && !flow {
			limit = line(list[j+1]) - 1
		}
		value := bare(e.Value)
		_, null := value.(*ast.NullNode)
		switch {
		case i == len(w.path)-1 && w.item:
			return d.addItem(e, value, flow, limit, w)
		case i == len(w.path)-1:
			return d.replace(e, value, w)
		case null:
			return d.fill(e, value, flow, w, i+1), nil
		case !isMapping(e.Value):
			return nil, &ByHand{w.key(), w.text, line(e), strings.Join(w.path[:i+1], ".") + " is not a map"}
		}
		n = e.Value
	}
	return nil, nil
}

// block returns the lines of a nested map, for the elements of a path from index from on.
func (d *document) block(w want, from, indent int) []string {
	var out []string
	for i, key := range w.path[from:] {
		text := strings.Repeat(" ", indent+i*d.step) + key + ":"
		if from+i == len(w.path)-1 {
			text += " " + w.value()
		}
		out = append(out, text+d.eol())
	}
	return out
}

// braces returns an entry of a map in braces, for the elements of a path from index from on.
func (w want) braces(from int) string {
	if from == len(w.path)-1 {
		return w.path[from] + ": " + w.value()
	}
	return w.path[from] + ": {" + w.braces(from+1) + "}"
}

// value returns the value of a new key. For a list, it is a list of one item.
func (w want) value() string {
	if w.item {
		return "[" + w.text + "]"
	}
	return w.text
}

func (w want) added(from, line int) Change {
	return Change{Key: w.key(), New: w.text, From: from, Line: line, Item: w.item}
}

func (w want) lines(from int, text []string) Change {
	c := w.added(from, 0)
	c.text = text
	return c
}

func (d *document) appendTop(w want) []candidate {
	lines := d.block(w, 0, 0)
	return []candidate{{d.withLines(d.end, lines), w.lines(0, lines)}}
}

// withLines inserts lines at an index. A file whose last line has no line break keeps that form.
func (d *document) withLines(at int, add []string) []string {
	out := slices.Clone(d.lines[:at])
	add = slices.Clone(add)
	if at > 0 && !strings.HasSuffix(out[at-1], "\n") {
		out[at-1] += d.eol()
		add[len(add)-1] = strings.TrimRight(add[len(add)-1], "\r\n")
	}
	return slices.Concat(out, add, d.lines[at:])
}

// insert adds the elements of a path from index from on to a map, after its other entries.
func (d *document) insert(n ast.Node, list []*ast.MappingValueNode, flow bool, limit int, w want, from int) []candidate {
	if flow {
		m, ok := bare(n).(*ast.MappingNode)
		if !ok || m.End == nil {
			return nil
		}
		return d.intoBraces(m.Start.Position, m.End.Position, len(list) > 0, w.braces(from), w.added(from, 0))
	}
	indent := column(list[0]) - 1
	lines := d.block(w, from, indent)
	end := d.back(limit, line(list[len(list)-1]), indent)
	return []candidate{
		{d.withLines(end, lines), w.lines(from, lines)},
		{d.withLines(limit, lines), w.lines(from, lines)},
		{d.withLines(line(list[0])-1, lines), w.lines(from, lines)},
	}
}

// back moves a limit back over blank lines, and over comments with too little indent to belong to
// the lines above them.
func (d *document) back(limit, first, indent int) int {
	for limit > first {
		text := strings.TrimLeft(d.lines[limit-1], " ")
		comment := strings.HasPrefix(text, "#") && len(d.lines[limit-1])-len(text) < indent
		if strings.TrimSpace(text) != "" && !comment {
			break
		}
		limit--
	}
	return limit
}

// intoBraces inserts text before the closing brace or bracket, or after the opening one. filled
// reports whether there are other entries, so a comma is needed.
func (d *document) intoBraces(open, end *token.Position, filled bool, text string, c Change) []candidate {
	var out []candidate
	put := func(row, col int, text string) {
		if row > len(d.lines) {
			return
		}
		l := d.lines[row-1]
		i := at(l, col)
		lines := slices.Clone(d.lines)
		lines[row-1] = l[:i] + text + l[i:]
		c.Line = row
		out = append(out, candidate{lines, c})
	}
	if !filled {
		put(end.Line, end.Column, text)
		return out
	}
	// The text goes directly after the last entry, before any space in front of the closing brace.
	row := end.Line
	head := d.lines[row-1][:at(d.lines[row-1], end.Column)]
	for strings.TrimSpace(head) == "" && row > open.Line {
		row--
		head = d.lines[row-1]
	}
	head = strings.TrimRight(head, " \t\r\n")
	glue := ", "
	if strings.HasSuffix(head, ",") {
		glue = " "
	}
	put(row, len([]rune(head))+1, glue+text)
	first := text + ", "
	if l := d.lines[open.Line-1]; strings.TrimSpace(l[at(l, open.Column+1):]) == "" {
		first = text + ","
	}
	put(open.Line, open.Column+1, first)
	return out
}

// fill adds the first entries to a key that has no value.
func (d *document) fill(e *ast.MappingValueNode, null ast.Node, flow bool, w want, from int) []candidate {
	var out []candidate
	if !flow {
		lines := d.block(w, from, column(e)-1+d.step)
		out = append(out, candidate{d.withLines(line(e), lines), w.lines(from, lines)})
	}
	out = append(out, d.swap(null, "{"+w.braces(from)+"}", w.added(from, line(e)))...)
	return append(out, d.behindColon(e, "{"+w.braces(from)+"}", w.added(from, line(e)))...)
}

// behindColon inserts a value after the colon of a key that has no value.
func (d *document) behindColon(e *ast.MappingValueNode, text string, c Change) []candidate {
	pos := e.GetToken().Position
	l := d.lines[pos.Line-1]
	i := at(l, pos.Column)
	if i >= len(l) || l[i] != ':' {
		return nil
	}
	lines := slices.Clone(d.lines)
	lines[pos.Line-1] = l[:i+1] + " " + text + l[i+1:]
	return []candidate{{lines, c}}
}

// swap replaces a value that is on a single line.
func (d *document) swap(n ast.Node, text string, c Change) []candidate {
	row, from, to, ok := d.span(n)
	if !ok {
		return nil
	}
	l := d.lines[row-1]
	lines := slices.Clone(d.lines)
	lines[row-1] = l[:from] + text + l[to:]
	return []candidate{{lines, c}}
}

// span returns the line of a value, and its byte range in that line. ok is false if the value isn't
// on a single line.
func (d *document) span(n ast.Node) (row, from, to int, ok bool) {
	t := n.GetToken()
	if t == nil || t.Position == nil || t.Position.Line > len(d.lines) || t.Position.Column < 1 {
		return 0, 0, 0, false
	}
	row = t.Position.Line
	l := d.lines[row-1]
	from = at(l, t.Position.Column)
	for from < len(l) && l[from] == ' ' {
		from++ // after a tag, the parser reports the column of the space
	}
	rest := strings.TrimRight(l[from:], "\r\n")
	length := -1
	switch {
	case rest == "":
	case rest[0] == '"':
		for i := 1; i < len(rest); i++ {
			if rest[i] == '\\' {
				i++
			} else if rest[i] == '"' {
				length = i + 1
				break
			}
		}
	case rest[0] == '\'':
		if i := strings.IndexByte(strings.ReplaceAll(rest[1:], "''", "xx"), '\''); i >= 0 {
			length = i + 2
		}
	case rest[0] == '*':
		if length = strings.IndexAny(rest, " \t,]}"); length < 0 {
			length = len(rest)
		}
	case strings.HasPrefix(rest, t.Value):
		length = len(t.Value)
	}
	return row, from, from + length, length > 0
}

// replace changes the value of an existing key.
func (d *document) replace(e *ast.MappingValueNode, value ast.Node, w want) ([]candidate, error) {
	c := Change{Key: w.key(), New: w.text, Line: line(e), From: -1}
	switch value.(type) {
	case *ast.NullNode:
		c.Old = "null"
		out := d.behindColon(e, w.text, c)
		return append(d.swap(value, w.text, c), out...), nil
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode, *ast.LiteralNode:
		return nil, &ByHand{w.key(), w.text, line(e), w.key() + " has an unexpected type"}
	}
	row, from, to, ok := d.span(value)
	if !ok {
		return nil, &ByHand{w.key(), w.text, line(e), w.key() + " has a multi-line value"}
	}
	c.Old, c.Line = d.lines[row-1][from:to], row
	return d.swap(value, w.text, c), nil
}

// addItem adds an item to an existing list.
func (d *document) addItem(e *ast.MappingValueNode, value ast.Node, flow bool, limit int, w want) ([]candidate, error) {
	c := w.added(len(w.path), line(e))
	switch x := value.(type) {
	case *ast.NullNode:
		return append(d.swap(x, w.value(), c), d.behindColon(e, w.value(), c)...), nil
	case *ast.SequenceNode:
		if x.IsFlowStyle {
			return d.intoBraces(x.Start.Position, x.End.Position, len(x.Values) > 0, w.text, c), nil
		}
		indent := x.Start.Position.Column - 1
		text := []string{strings.Repeat(" ", indent) + "- " + w.text + d.eol()}
		c.Line, c.text = 0, text
		return []candidate{{d.withLines(d.back(limit, x.Values[len(x.Values)-1].GetToken().Position.Line, indent), text), c},
			{d.withLines(x.Start.Position.Line-1, text), c}}, nil
	}
	return nil, &ByHand{w.key(), "- " + w.text, line(e), w.key() + " is not a list"}
}
