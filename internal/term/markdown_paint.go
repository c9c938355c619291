package term

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// paint tells how to color rendered Markdown.
type paint int

const (
	unpainted paint = iota // Markdown marks replace the colors
	onDark
	onLight
)

func paintOf(dark, colour bool) paint {
	switch {
	case !colour:
		return unpainted
	case dark:
		return onDark
	}
	return onLight
}

// look is the style of a piece of text, as a set.
type look uint16

const (
	bold look = 1 << iota
	italic
	struck
	code
	link
	heading
	title // a heading of the first level
	aside // decoration: bullets, bars, addresses
)

// The terminal's own 16 colors that are readable on each background.
var colours = map[paint]struct{ code, link, heading string }{
	onDark:  {code: "11", link: "14", heading: "12"},
	onLight: {code: "1", link: "6", heading: "4"},
}

func (l look) style(on paint) lipgloss.Style {
	s, c := lipgloss.NewStyle(), colours[on]
	if on == unpainted {
		return s
	}
	switch {
	case l&code != 0:
		s = s.Foreground(lipgloss.Color(c.code))
	case l&link != 0:
		s = s.Foreground(lipgloss.Color(c.link))
	case l&heading != 0:
		s = s.Foreground(lipgloss.Color(c.heading))
	}
	return s.Bold(l&(bold|heading) != 0).Italic(l&italic != 0).Strikethrough(l&struck != 0).
		Underline(l&(link|title) != 0).Faint(l&aside != 0)
}

// inks caches the control sequences around a text for each look.
type inks map[look][2]string

// around takes the sequences from a rendered letter, because lipgloss repeats them for each
// character of an underlined or struck text.
func (k inks) around(l look, on paint) (before, after string) {
	ink, ok := k[l]
	if !ok {
		ink[0], ink[1], _ = strings.Cut(l.style(on).Render("x"), "x")
		k[l] = ink
	}
	return ink[0], ink[1]
}
