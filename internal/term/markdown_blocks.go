package term

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	source "github.com/yuin/goldmark/text"
)

// page lays out one text.
type page struct {
	source []byte
	paint  paint
	inks   inks
	// lead begins the next text: the markers of list items that have no line of their own.
	lead string
}

// narrow is the width below which indentation stops, so that a text of any depth stays readable.
const narrow = 8

// blocks lays out the children of a block, with empty lines between them unless the block is tight.
func (p *page) blocks(parent ast.Node, width int, tight bool) []string {
	var out []string
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		lines := p.block(n, width)
		if len(lines) > 0 && len(out) > 0 && !tight {
			out = append(out, "")
		}
		if out == nil { // avoid copying the lines of a deep text at each level
			out = lines
			continue
		}
		out = append(out, lines...)
	}
	return out
}

func (p *page) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return p.heading(n, width)
	case *ast.Paragraph, *ast.TextBlock:
		return p.lines(fill(p.prose(n, 0), width))
	case *ast.ThematicBreak:
		return []string{p.aside(strings.Repeat("─", width))}
	case *ast.CodeBlock:
		return p.code("", n.Lines(), width)
	case *ast.FencedCodeBlock:
		return p.code(unescape(string(n.Language(p.source))), n.Lines(), width)
	case *ast.HTMLBlock:
		return p.html(n, width)
	case *ast.Blockquote:
		if width-2 < narrow {
			return p.blocks(n, width, false)
		}
		bar := p.aside("│") + " "
		return indent(p.blocks(n, width-2, false), bar, bar)
	case *ast.List:
		return p.list(n, width)
	case *extast.Table:
		return p.table(n, width)
	case *ast.LinkReferenceDefinition: // its address appears where a link uses it
		return nil
	}
	return p.blocks(n, width, false)
}

func (p *page) heading(n *ast.Heading, width int) []string {
	mark, l := strings.Repeat("#", n.Level)+" ", heading
	if n.Level == 1 {
		l |= title
		if p.paint != unpainted {
			mark = ""
		}
	}
	if width-len(mark) < narrow {
		mark = ""
	}
	lines := p.lines(fill(p.prose(n, l), width-len(mark)))
	return indent(lines, p.painted(mark, heading), strings.Repeat(" ", len(mark)))
}

// prose lays out the text of a block.
func (p *page) prose(n ast.Node, l look) []cell {
	var out prose
	out.add(p.lead, aside)
	p.lead = ""
	p.inline(n, l, &out)
	return out.cells()
}

// code keeps lines and spaces, and cuts only long lines.
func (p *page) code(language string, from *source.Segments, width int) []string {
	var out []string
	if language != "" {
		var name prose
		name.add(language, aside)
		out = p.lines(fill(name.cells(), width))
	}
	step := 2
	if width-step < narrow {
		step = 0
	}
	var lines [][]cell
	for i := range from.Len() {
		segment := from.At(i)
		var l prose
		l.add(strings.TrimSuffix(string(segment.Value(p.source)), "\n"), code)
		lines = append(lines, chop(l.cells(), width-step)...)
	}
	return append(out, indent(p.lines(lines), strings.Repeat(" ", step), strings.Repeat(" ", step))...)
}

// html shows HTML as written: nothing runs it here, and nothing may hide in it.
func (p *page) html(n *ast.HTMLBlock, width int) []string {
	s := string(n.Lines().Value(p.source))
	if n.HasClosure() {
		s += string(n.ClosureLine.Value(p.source))
	}
	return wrap(strings.TrimRight(s, "\n"), width)
}

func (p *page) list(n *ast.List, width int) []string {
	digits := len(strconv.Itoa(n.Start + n.ChildCount() - 1))
	number := n.Start
	var out []string
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			s := strconv.Itoa(number) + string(n.Marker)
			mark = strings.Repeat(" ", max(digits+1-len(s), 0)) + s + " "
			number++
		}
		lines := p.item(item, mark, width, n.IsTight)
		if len(out) > 0 && !n.IsTight {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

func (p *page) item(n ast.Node, mark string, width int, tight bool) []string {
	step := utf8.RuneCountInString(mark)
	if width-step < narrow {
		p.lead += mark
		lines := p.blocks(n, width, tight)
		p.lead = ""
		return lines
	}
	lines := p.blocks(n, width-step, tight)
	if len(lines) == 0 {
		lines = []string{""}
	}
	return indent(lines, p.aside(mark), strings.Repeat(" ", step))
}

// lines paints characters that are broken into lines.
func (p *page) lines(cells [][]cell) []string {
	out := make([]string, len(cells))
	for i, l := range cells {
		out[i] = p.line(l)
	}
	return out
}

func (p *page) line(cells []cell) string {
	var b strings.Builder
	for begin := 0; begin < len(cells); {
		l := cells[begin].look
		before, after := p.inks.around(l, p.paint)
		b.WriteString(before)
		for begin < len(cells) && cells[begin].look == l {
			b.WriteString(cells[begin].text)
			begin++
		}
		b.WriteString(after)
	}
	return b.String()
}

func (p *page) painted(s string, l look) string {
	if s == "" {
		return ""
	}
	before, after := p.inks.around(l, p.paint)
	return before + s + after
}

func (p *page) aside(s string) string { return p.painted(s, aside) }

// indent adds one prefix to the first line and another to the rest. Empty lines stay empty when the
// prefix is only spaces.
func indent(lines []string, first, rest string) []string {
	for i, l := range lines {
		before := rest
		if i == 0 {
			before = first
		}
		if l != "" || strings.TrimSpace(before) != "" {
			lines[i] = strings.TrimRight(before+l, " ")
		}
	}
	return lines
}
