package term

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"hermes-mobile/frame"
)

// The reasons why a card needs a closer look.
const (
	hiddenCommand = "This command contains characters that don't show as themselves."
	hiddenText    = "This card contains characters that don't show as themselves."
	foldedBlanks  = "Long blank runs are folded."
	oddForServer  = "The server says this card needs a closer look."
)

// warnings tell why the card needs a closer look. Its length is visible anyway.
func (c *card) warnings() (list []string) {
	switch {
	case c.command.Hidden:
		list = append(list, hiddenCommand)
	case c.text.Hidden || c.about.Hidden || c.hiddenLabel:
		list = append(list, hiddenText)
	}
	if c.command.Blank || c.text.Blank || c.about.Blank {
		list = append(list, foldedBlanks)
	}
	if list == nil && c.odd && !c.command.Long && !c.text.Long && !c.about.Long {
		list = append(list, oddForServer)
	}
	return list
}

// piece is a part of a text with one style.
type piece struct {
	text string
	mark bool // a mark for a hidden character, or the label of a fold
}

// rows returns the lines of a text in pieces, with labels in place of folds.
func rows(s frame.Shown) [][]piece {
	lines := [][]piece{{}}
	add := func(text string, mark bool) {
		for i, l := range strings.Split(strings.ReplaceAll(text, "\t", "    "), "\n") {
			if i > 0 {
				lines = append(lines, []piece{})
			}
			if l != "" {
				lines[len(lines)-1] = append(lines[len(lines)-1], piece{l, mark})
			}
		}
	}
	for _, seg := range s.Segments {
		label := seg.Label()
		if label == "" {
			add(seg.Text, seg.Kind == frame.MarkSegment)
			continue
		}
		add(label, true)
		if seg.Kind == frame.LinesSegment && strings.HasSuffix(seg.Text, "\n") {
			lines = append(lines, []piece{})
		}
	}
	if n := len(lines); n > 1 && len(lines[n-1]) == 0 {
		lines = lines[:n-1] // the end of the last line
	}
	return lines
}

// commandLines lays out a whole command. Each character matters, so it fills lines instead of
// breaking them between words. A line of the command begins with $ or >, and its continuation with
// spaces.
func commandLines(s frame.Shown, width int, plain, mark lipgloss.Style) (out []string) {
	head := "$ "
	for _, row := range rows(s) {
		out = append(out, fillRow(row, head, width, plain, mark)...)
		head = "> "
	}
	return out
}

// fillRow breaks one line of a command at the edge of the screen.
func fillRow(row []piece, head string, width int, plain, mark lipgloss.Style) (out []string) {
	width = max(width-len(head), 2)
	var b strings.Builder
	used := 0
	next := func() {
		out = append(out, plain.Render(head)+b.String())
		head = strings.Repeat(" ", len(head))
		used = 0
		b.Reset()
	}
	for _, p := range row {
		style := plain
		if p.mark {
			style = mark
		}
		from := 0
		for at := 0; at < len(p.text); {
			cluster, wide := ansi.FirstGraphemeCluster(p.text[at:], ansi.GraphemeWidth)
			if used+wide > width {
				b.WriteString(style.Render(p.text[from:at]))
				from = at
				next()
			}
			used += wide
			at += len(cluster)
		}
		b.WriteString(style.Render(p.text[from:]))
	}
	next()
	return out
}

// textLines lays out a text of a card, with breaks between words.
func textLines(s frame.Shown, width int) []string {
	return wrap(strings.ReplaceAll(strings.TrimRight(s.Folded(), "\n"), "\t", "    "), width)
}
