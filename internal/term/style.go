package term

import (
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// palette holds the styles of the screen. It uses the terminal's own 16 colors, which suit its
// background.
type palette struct {
	mine, agent, card, dim, good, warn, bad, bold, box lipgloss.Style
}

func newPalette(colour bool) palette {
	s := lipgloss.NewStyle()
	p := palette{
		mine: s.Bold(true), agent: s.Bold(true), card: s.Bold(true), dim: s, good: s, warn: s, bad: s, bold: s.Bold(true),
		box: s.Border(lipgloss.RoundedBorder()).Padding(0, 1),
	}
	if colour {
		c := func(n string) lipgloss.Style { return s.Foreground(lipgloss.Color(n)) }
		p.mine, p.agent, p.card = c("6").Bold(true), c("5").Bold(true), c("3").Bold(true)
		p.dim, p.good, p.warn, p.bad = s.Faint(true), c("2"), c("3"), c("1")
		p.box = p.box.BorderForeground(lipgloss.Color("3"))
	}
	return p
}

// cut shortens a styled line to a width.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }

func strip(s string) string { return ansi.Strip(s) }

// pad extends a text to a number of lines.
func pad(lines []string, height int) string {
	for len(lines) < height {
		lines = append(lines, "")
	}
	return strings.Join(lines[:max(height, 0)], "\n")
}
