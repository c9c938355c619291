package term

import (
	"strings"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/styles"
	"charm.land/lipgloss/v2"
)

// markdown renders final messages for one width and one palette.
type markdown struct {
	width    int
	style    string
	renderer *glamour.TermRenderer
}

// render lays out a cleaned text. What cannot be rendered comes as it is.
func (m *markdown) render(text string, width int, style string) []string {
	if m.renderer == nil || m.width != width || m.style != style {
		r, err := glamour.NewTermRenderer(glamour.WithStandardStyle(style), glamour.WithWordWrap(max(width-2, 10)), glamour.WithPreservedNewLines())
		if err != nil {
			return wrap(text, width)
		}
		m.renderer, m.width, m.style = r, width, style
	}
	out, err := m.renderer.Render(noReferences(text))
	if err != nil {
		return wrap(text, width)
	}
	lines := strings.Split(strings.Trim(onlyColours(out), "\n"), "\n")
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	// Code and tables are not wrapped by the renderer.
	return strings.Split(lipgloss.Wrap(strings.Join(lines, "\n"), width, ""), "\n")
}

func blank(s string) bool {
	return lipgloss.Width(strings.TrimSpace(s)) == 0 || strings.TrimSpace(strip(s)) == ""
}

// wrap lays out a cleaned text as it is.
func wrap(s string, width int) []string {
	return strings.Split(lipgloss.Wrap(s, max(width, 1), ""), "\n")
}

// style names the palette.
func styleName(dark, colour bool) string {
	switch {
	case !colour:
		return styles.NoTTYStyle
	case dark:
		return styles.DarkStyle
	}
	return styles.LightStyle
}
