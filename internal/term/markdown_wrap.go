package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// prose is a text with its looks. It splits into characters only as a whole: a character may
// consist of pieces with different looks, and has a width only when they are together.
type prose struct {
	text  strings.Builder
	looks []stretch
}

// stretch is the look of the text up to a position.
type stretch struct {
	end  int
	look look
}

func (p *prose) add(s string, l look) {
	if s == "" {
		return
	}
	p.text.WriteString(s)
	if n := len(p.looks); n > 0 && p.looks[n-1].look == l {
		p.looks[n-1].end = p.text.Len()
		return
	}
	p.looks = append(p.looks, stretch{p.text.Len(), l})
}

// cell is one character as a person sees it.
type cell struct {
	text  string
	look  look
	width int8 // columns on the screen
}

func (c cell) is(s string) bool { return c.text == s }

func (p *prose) cells() []cell {
	text, looks := p.text.String(), p.looks
	out := make([]cell, 0, len(text))
	for at := 0; at < len(text); {
		for looks[0].end <= at {
			looks = looks[1:]
		}
		c := cell{text: text[at : at+1], look: looks[0].look, width: 1}
		switch alone := at+1 == len(text) || text[at+1] < 0x80; {
		case text[at] == '\n':
			c.width = 0
		case text[at] >= 0x80 || !alone:
			cluster, width := ansi.FirstGraphemeCluster(text[at:], ansi.GraphemeWidth)
			c.text, c.width = cluster, int8(width)
		}
		out = append(out, c)
		at += len(c.text)
	}
	return out
}

// fill breaks a text between words, and inside a word only if the word is longer than a line. It
// keeps the line ends of the text.
func fill(cells []cell, width int) [][]cell {
	width = max(width, 2) // of the widest character
	var lines [][]cell
	begin, used, last := 0, 0, -1 // the start of the line, its width so far, its last break
	next := func(at int) { begin, used, last = at, 0, -1 }
	spaces := func(at int) int {
		for at < len(cells) && cells[at].is(" ") {
			at++
		}
		return at
	}
	for at := 0; at < len(cells); {
		c := cells[at]
		switch {
		case c.is("\n"):
			lines = append(lines, trim(cells[begin:at]))
			at++
			next(at)
		case at == begin && c.width == 0: // it would combine with text before the line
			at++
			next(at)
		case used+int(c.width) <= width:
			if at > begin && breaks(cells[at-1], c) {
				last = at
			}
			used += int(c.width)
			at++
		case c.is(" "):
			lines = append(lines, trim(cells[begin:at]))
			at = spaces(at)
			next(at)
		case breaks(cells[at-1], c) || last < 0:
			lines = append(lines, trim(cells[begin:at]))
			next(at)
		default:
			lines = append(lines, trim(cells[begin:last]))
			next(last)
			used = widthOf(cells[begin:at])
		}
	}
	return append(lines, trim(cells[begin:]))
}

// breaks reports whether a line may end between two characters: after a space, and around wide
// characters, whose scripts have no spaces.
func breaks(a, b cell) bool {
	switch {
	case b.is(" "):
		return false
	case a.is(" "):
		return true
	case a.width < 2 && b.width < 2:
		return false
	}
	return !strings.Contains("、。，．：；！？）」』】》〉〕”’,.:;!?)]}…", b.text) && !strings.Contains("（「『【《〈〔“‘([{", a.text)
}

// chop breaks a text into full lines, for texts whose spaces matter.
func chop(cells []cell, width int) [][]cell {
	width = max(width, 2)
	var lines [][]cell
	begin, used := 0, 0
	for at, c := range cells {
		if at == begin && c.width == 0 {
			begin++
			continue
		}
		if used+int(c.width) > width {
			lines = append(lines, cells[begin:at])
			begin, used = at, 0
		}
		used += int(c.width)
	}
	return append(lines, cells[begin:])
}

func trim(cells []cell) []cell {
	for len(cells) > 0 && cells[len(cells)-1].is(" ") {
		cells = cells[:len(cells)-1]
	}
	return cells
}

func widthOf(cells []cell) int {
	width := 0
	for _, c := range cells {
		width += int(c.width)
	}
	return width
}

// wrap lays out a clean text as it is.
func wrap(s string, width int) []string {
	var out []string
	for l := range strings.SplitSeq(s, "\n") {
		var p prose
		p.add(l, 0)
		for _, cells := range fill(p.cells(), width) {
			var b strings.Builder
			for _, c := range cells {
				b.WriteString(c.text)
			}
			out = append(out, b.String())
		}
	}
	return out
}
