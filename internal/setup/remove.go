package setup

import (
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// revert undoes one change. It returns false if the key has another value than setup wrote, or
// can't be removed without changing other settings. If the key is already gone, there is nothing to
// undo.
func revert(text []byte, c Change) ([]byte, bool) {
	w := want{path: strings.Split(c.Key, "."), text: c.New, item: c.Item}
	d, err := parse(text)
	if err != nil {
		return nil, false
	}
	v, ok := lookup(d.value, w.path)
	if !ok || c.Item && !d.has(w) {
		return text, true
	}
	if !c.Item && !w.matches(v) {
		return nil, false
	}
	for _, lines := range d.without(w, c) {
		out := d.bytes(lines)
		if gone(out, w, c) && verify(out, text, w) == nil {
			return out, true
		}
	}
	return nil, false
}

// gone reports whether a text no longer contains a change.
func gone(text []byte, w want, c Change) bool {
	d, err := parse(text)
	if err != nil {
		return false
	}
	v, there := lookup(d.value, w.path)
	switch {
	case c.Item:
		return !d.has(w)
	case c.Old == "" || c.Old == "null":
		return !there || !w.matches(v) // a merge ("<<") may bring another value
	}
	return there
}

// without returns possible texts without a change, the best first.
func (d *document) without(w want, c Change) [][]string {
	var chain []*ast.MappingValueNode
	flows := []bool{}
	alone := []bool{}
	n := d.root
	for _, key := range w.path {
		list, flow := entriesOf(n)
		_, e := find(list, key)
		if e == nil {
			return nil
		}
		chain, flows, alone = append(chain, e), append(flows, flow), append(alone, len(list) == 1)
		n = e.Value
	}
	last := len(chain) - 1
	value := bare(chain[last].Value)
	switch {
	case c.Item && c.From >= len(w.path):
		return d.withoutItem(value, w)
	case c.From < 0:
		var out [][]string
		for _, k := range d.swap(value, c.Old, c) {
			out = append(out, k.lines)
		}
		return out
	}
	// Remove the maps that setup created for this key if they hold nothing else, otherwise the key
	// alone.
	var out [][]string
	for top := c.From; top <= last; top++ {
		if slices.Contains(alone[top+1:], false) {
			continue
		}
		if flows[top] {
			out = append(out, d.cutEntry(chain[top], value)...)
			continue
		}
		end := lastLine(value)
		if end < line(chain[top]) {
			continue
		}
		out = append(out, d.cutLines(line(chain[top])-1, end))
	}
	// A key without a value got a map on its own line. Remove that map and keep the key.
	if c.From > 0 && c.From <= last {
		if m, ok := bare(chain[c.From-1].Value).(*ast.MappingNode); ok && m.IsFlowStyle && m.End != nil && m.Start.Position.Line == m.End.Position.Line && alone[c.From] {
			out = append(out, d.cutSpan(m.Start.Position.Line, m.Start.Position.Column, m.End.Position.Column+1))
		}
	}
	return out
}

// lastLine returns the last line of a value that setup wrote.
func lastLine(n ast.Node) int {
	if s, ok := n.(*ast.SequenceNode); ok && s.End != nil {
		return s.End.Position.Line
	}
	return n.GetToken().Position.Line
}

// cutLines removes the lines with the indexes from to to-1.
func (d *document) cutLines(from, to int) []string {
	out := slices.Concat(d.lines[:from], d.lines[to:])
	if to == len(d.lines) && from > 0 && !strings.HasSuffix(d.lines[to-1], "\n") {
		out = slices.Clone(out)
		out[from-1] = strings.TrimRight(out[from-1], "\r\n") // the file had no line break at its end
	}
	return out
}

// cutSpan removes the columns from to to-1 of a line.
func (d *document) cutSpan(row, from, to int) []string {
	l := d.lines[row-1]
	out := slices.Clone(d.lines)
	out[row-1] = strings.TrimRight(l[:at(l, from)], " ") + l[at(l, to):]
	return out
}

// cutEntry removes an entry of a map in braces, and one comma.
func (d *document) cutEntry(e *ast.MappingValueNode, leaf ast.Node) [][]string {
	row, from := line(e), column(e)
	to := 0
	switch x := bare(e.Value).(type) {
	case *ast.MappingNode:
		if x.End == nil || x.End.Position.Line != row {
			return nil
		}
		to = x.End.Position.Column + 1
	case *ast.SequenceNode:
		if x.End == nil || x.End.Position.Line != row {
			return nil
		}
		to = x.End.Position.Column + 1
	default:
		r, _, end, ok := d.span(leaf)
		if !ok || r != row {
			return nil
		}
		to = len([]rune(d.lines[row-1][:end])) + 1
	}
	return d.cutListed(row, from, to)
}

// cutListed removes the columns from to to-1 of a line, and the comma before or after them.
func (d *document) cutListed(row, from, to int) [][]string {
	l := d.lines[row-1]
	head, tail := l[:at(l, from)], l[at(l, to):]
	cut := func(head, tail string) []string {
		out := slices.Clone(d.lines)
		out[row-1] = head + tail
		return out
	}
	var out [][]string
	if h := strings.TrimRight(head, " \t"); strings.HasSuffix(h, ",") {
		out = append(out, cut(strings.TrimSuffix(h, ","), tail), cut(h, tail))
	}
	if t := strings.TrimLeft(tail, " \t"); strings.HasPrefix(t, ",") {
		out = append(out, cut(head, strings.TrimLeft(t[1:], " \t")))
	}
	return append(out, cut(head, tail))
}

// withoutItem returns possible texts without an item of a list.
func (d *document) withoutItem(value ast.Node, w want) [][]string {
	s, ok := value.(*ast.SequenceNode)
	if !ok {
		return nil
	}
	for _, item := range s.Values {
		t := item.GetToken()
		if t.Value != unquoted(w.text) {
			continue
		}
		if !s.IsFlowStyle {
			return [][]string{d.cutLines(t.Position.Line-1, t.Position.Line)}
		}
		row, _, end, ok := d.span(item)
		if !ok {
			return nil
		}
		return d.cutListed(row, t.Position.Column, len([]rune(d.lines[row-1][:end]))+1)
	}
	return nil
}

// dropKey removes a key of a block map and everything below it. It returns false if that would
// change anything else.
func (d *document) dropKey(path []string) ([]byte, bool) {
	n, limit := d.root, d.end
	var e *ast.MappingValueNode
	for _, key := range path {
		list, flow := entriesOf(n)
		var j int
		if j, e = find(list, key); e == nil || flow {
			return nil, false
		}
		if j+1 < len(list) {
			limit = line(list[j+1]) - 1
		}
		n = e.Value
	}
	out := d.bytes(d.cutLines(line(e)-1, d.back(limit, line(e), column(e)-1)))
	after, err := parse(out)
	if err != nil || !slices.Equal(after.comments, d.comments) {
		return nil, false
	}
	if _, there := lookup(after.value, path); there || !sameWithout(d.value, after.value, path) {
		return nil, false
	}
	return out, true
}

// sameWithout reports whether b is a without the key at a path.
func sameWithout(a, b any, path []string) bool {
	old, _ := a.(yaml.MapSlice)
	now, _ := b.(yaml.MapSlice)
	i := slices.IndexFunc(old, func(e yaml.MapItem) bool { return e.Key == any(path[0]) })
	if i < 0 {
		return false
	}
	if len(path) == 1 {
		return reflect.DeepEqual(normal(slices.Delete(slices.Clone(old), i, i+1)), normal(now))
	}
	if len(old) != len(now) || !sameWithout(old[i].Value, now[i].Value, path[1:]) {
		return false
	}
	rest := func(m yaml.MapSlice) yaml.MapSlice { return slices.Delete(slices.Clone(m), i, i+1) }
	return now[i].Key == old[i].Key && reflect.DeepEqual(rest(old), rest(now))
}
