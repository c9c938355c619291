package term

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
)

const (
	between  = " │ "
	crossing = "─┼─"
	gap      = 3 // columns of each of them
	// slimmest is the least width of a squeezed column. Below it, hardly a word fits.
	slimmest = 8
)

// table lays out columns, and squeezes them where they do not fit. With too many columns, it shows
// each row as a list.
func (p *page) table(t *extast.Table, width int) []string {
	columns := len(t.Alignments)
	room := width - gap*(columns-1)
	natural := make([]int, columns)
	var rows [][][]cell
	for row := t.FirstChild(); row != nil; row = row.NextSibling() {
		cells := make([][]cell, columns)
		at := 0
		for c := row.FirstChild(); c != nil && at < columns; c = c.NextSibling() {
			var out prose
			p.inline(c, headerLook(row), &out)
			cells[at] = out.cells()
			natural[at] = max(natural[at], widthOf(cells[at]), 1)
			at++
		}
		rows = append(rows, cells)
	}
	widths, ok := squeeze(natural, room)
	if !ok {
		return p.records(t, width)
	}
	var out []string
	for i, row := range rows {
		out = append(out, p.row(row, widths, t.Alignments)...)
		if i == 0 {
			out = append(out, p.rule(widths))
		}
	}
	return out
}

func headerLook(row ast.Node) look {
	if row.Kind() == extast.KindTableHeader {
		return bold
	}
	return 0
}

// squeeze narrows the widest columns until all columns fit.
func squeeze(natural []int, room int) (widths []int, ok bool) {
	sum := func(most int) int {
		n := 0
		for _, w := range natural {
			n += min(w, most)
		}
		return n
	}
	most := 0
	for most < room && sum(most+1) <= room {
		most++
	}
	if most == 0 || most < slimmest && sum(most+1) > room {
		return nil, false
	}
	rest := room - sum(most)
	widths = make([]int, len(natural))
	for i, w := range natural {
		widths[i] = min(w, most)
		if w > most && rest > 0 {
			widths[i]++
			rest--
		}
	}
	return widths, true
}

func (p *page) row(cells [][]cell, widths []int, align []extast.Alignment) []string {
	columns := make([][][]cell, len(cells))
	height := 1
	for i, c := range cells {
		columns[i] = fill(c, widths[i])
		height = max(height, len(columns[i]))
	}
	out := make([]string, height)
	for y := range out {
		var b strings.Builder
		for x, lines := range columns {
			if x > 0 {
				b.WriteString(p.aside(between))
			}
			var content []cell
			if y < len(lines) {
				content = lines[y]
			}
			free := max(widths[x]-widthOf(content), 0)
			left := 0
			switch align[x] {
			case extast.AlignRight:
				left = free
			case extast.AlignCenter:
				left = free / 2
			}
			b.WriteString(strings.Repeat(" ", left))
			b.WriteString(p.line(content))
			b.WriteString(strings.Repeat(" ", free-left))
		}
		out[y] = strings.TrimRight(b.String(), " ")
	}
	return out
}

func (p *page) rule(widths []int) string {
	parts := make([]string, len(widths))
	for i, w := range widths {
		parts[i] = strings.Repeat("─", w)
	}
	return p.aside(strings.Join(parts, crossing))
}

// records returns each row as lines of "column: value".
func (p *page) records(t *extast.Table, width int) []string {
	header := t.FirstChild()
	var out []string
	for row := header.NextSibling(); row != nil; row = row.NextSibling() {
		if len(out) > 0 {
			out = append(out, "")
		}
		for name, c := header.FirstChild(), row.FirstChild(); name != nil && c != nil; name, c = name.NextSibling(), c.NextSibling() {
			var l prose
			if name.HasChildren() {
				p.inline(name, bold, &l)
				l.add(": ", bold)
			}
			p.inline(c, 0, &l)
			out = append(out, p.lines(fill(l.cells(), width))...)
		}
	}
	if out == nil { // a header alone
		for name := header.FirstChild(); name != nil; name = name.NextSibling() {
			var l prose
			p.inline(name, bold, &l)
			out = append(out, p.lines(fill(l.cells(), width))...)
		}
	}
	return out
}
