package term

import (
	"fmt"
	"strings"

	"hermes-mobile/frame"
)

// lay lays out the texts of the card for the width of the screen.
func (c *card) lay(m *model, width int) {
	if c.lines != nil && c.shape == m.shape {
		return
	}
	c.shape, c.lines = m.shape, nil
	if len(c.text.Segments) > 0 {
		c.lines = append(c.lines, textLines(c.text, width)...)
	}
	if len(c.command.Segments) > 0 {
		c.lines = append(c.lines, commandLines(c.command, width, m.style.bold, m.style.warn)...)
	}
	if len(c.about.Segments) > 0 {
		c.lines = append(c.lines, textLines(c.about, width)...)
	}
}

// cardPanel draws the chosen card above the input. A long card scrolls, and its options that grant
// something stay locked until its end was on the screen.
func (m *model) cardPanel() []string {
	c := m.card()
	if c == nil {
		return nil
	}
	width := max(m.shape.width-4, 10)
	head := m.style.card.Render(map[string]string{frame.ExecApproval: "Allow this command?", frame.SlashConfirm: "Confirm", frame.Clarify: "Question"}[c.kind])
	if left := c.left(m.now()); left != "" {
		head += m.style.dim.Render("  " + left)
	}
	if len(m.cards) > 1 {
		head += m.style.dim.Render(fmt.Sprintf("  card %d of %d (Tab: next)", m.chosen+1, len(m.cards)))
	}
	above := []string{cut(head, width)}
	for _, warning := range c.warnings() {
		for _, l := range wrap("! "+warning, width) {
			above = append(above, m.style.warn.Render(l))
		}
	}

	c.lay(m, width)
	// The options and everything around the card get their space first, then the texts, which get
	// at most a third of the screen.
	room := m.height - len(m.header()) - 1 - m.input.Height() - 1 - len(above) - 1 - len(c.options) - 1 - 2
	c.page = min(max(min(m.height/3, room), 1), len(c.lines))
	c.move(0)
	end := c.scroll + c.page
	c.read = c.read || end == len(c.lines) && room >= c.page
	body := append(above, c.lines[c.scroll:end]...)
	more := len(c.lines) - end
	switch {
	case room < c.page:
		body = append(body, m.style.warn.Render(cut("The terminal is too small for this card: enlarge it", width)))
	case more > 0 && !c.read:
		body = append(body, m.style.warn.Render(cut(fmt.Sprintf("%d more lines (PgDn, Shift+↓). Read to the end to allow", more), width)))
	case len(c.lines) > c.page:
		body = append(body, m.style.dim.Render(cut(fmt.Sprintf("Lines %d to %d of %d (PgUp, PgDn, Shift+↑↓)", c.scroll+1, end, len(c.lines)), width)))
	}

	for i, o := range c.options {
		l := fmt.Sprintf("%d %s", i+1, o.Label)
		style := m.style.dim
		switch {
		case c.locked(o):
			l += " (read to the end first)"
		case o.Style == "danger":
			style = m.style.bad
		case o.Style == "primary":
			style = m.style.good
		}
		mark := "  "
		if i == c.selected {
			mark, style = "▸ ", style.Bold(true)
		}
		body = append(body, cut(mark+style.Render(l), width))
	}
	wait := wait(m.status, m.now())
	switch {
	case wait != "":
		body = append(body, m.style.warn.Render(cut(wait, width)))
	case c.asked != "":
		body = append(body, m.style.dim.Render(cut("Sending: "+c.asked, width)))
	case m.writing == c.id:
		body = append(body, m.style.dim.Render("Write your own answer below. Enter sends it, Esc cancels."))
	case c.own():
		body = append(body, m.style.dim.Render(cut("Number or ↑↓, then Enter; o to write your own answer", width)))
	default:
		body = append(body, m.style.dim.Render(cut(c.help(), width)))
	}
	return strings.Split(m.style.box.Width(m.shape.width).Render(strings.Join(body, "\n")), "\n")
}
