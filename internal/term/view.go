package term

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// resize adopts the size of the terminal.
func (m *model) resize(width, height int) {
	m.width, m.height = max(width, 20), max(height, 6)
	m.shape.width = m.width
	m.input.SetWidth(m.width)
	m.refresh()
}

// refresh lays out the transcript and keeps its end on the screen, unless the user scrolled up.
func (m *model) refresh() {
	follow := m.view.AtBottom()
	m.view.SetWidth(m.width)
	m.view.SetHeight(m.bodyHeight())
	m.view.SetContentLines(m.transcript())
	if follow {
		m.view.GotoBottom()
	}
	m.unread = m.unread && !m.view.AtBottom()
}

// panel returns the lines between the transcript and the input: the card, and the state of the
// agent.
func (m *model) panel() []string {
	lines := m.cardPanel()
	state := ""
	switch {
	case m.choices != "":
		state = m.style.dim.Render(m.choices)
	case m.busy():
		what := "The agent is working"
		switch m.activity.Avatar {
		case "thinking":
			what = "The agent is thinking"
		case "speaking":
			what = "The agent is answering"
		}
		state = m.spin.View() + " " + m.style.dim.Render(what+" (Esc: stop)")
	case m.unread:
		state = m.style.warn.Render("↓ New messages below (Ctrl+End)")
	}
	return append(lines, cut(state, m.width))
}

func (m *model) bodyHeight() int {
	return max(m.height-len(m.header())-len(m.panel())-m.input.Height(), 1)
}

// header returns the connection line. It has up to three lines when the user must do something, for
// example with an approval code.
func (m *model) header() []string {
	text, level := connection(m.status, m.opts, m.now())
	style := [...]struct {
		mark  string
		style func(...string) string
	}{{"● ", m.style.good.Render}, {"◌ ", m.style.warn.Render}, {"✗ ", m.style.bad.Render}}[level]
	if level == 0 {
		return []string{cut(style.style(style.mark+text), m.width)}
	}
	lines := wrap(style.mark+text, m.width)
	lines = lines[:min(len(lines), 3)]
	for i := range lines {
		lines[i] = style.style(lines[i])
	}
	return lines
}

// View implements tea.Model.
func (m *model) View() tea.View {
	panel := m.panel()
	body := strings.Split(m.view.View(), "\n")
	lines := append(m.header(), body[:min(len(body), m.bodyHeight())]...)
	lines = append(lines, panel...)
	top := len(lines)
	lines = append(lines, strings.Split(m.input.View(), "\n")...)
	v := tea.NewView(pad(lines, max(m.height, len(lines))))
	if c := m.input.Cursor(); c != nil {
		c.Position.Y += top
		v.Cursor = c
	}
	v.AltScreen = true
	v.WindowTitle = "Hermes"
	if m.opts.Mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
