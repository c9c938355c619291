package term

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"charm.land/lipgloss/v2"
)

type kind int

const (
	mine   kind = iota // a message of the user
	reply              // a message of the agent
	upload             // a file of the user
	file               // a file of the agent
	done               // a card that ended
	tool               // the activity of a tool
	notice             // a message of this program
)

// entry is one item of the transcript. All its texts are clean.
type entry struct {
	kind  kind
	id    string
	at    time.Time
	text  string
	mark  mark
	why   string // of failed
	final bool   // of reply
	extra string // mine: the other device; reply: scheduled, interrupted; file: where it was saved
	sent  *atomic.Int64
	total int64

	lines []string // laid out for layout
	shape layout
}

// mark is the progress of a sent message.
type mark int

const (
	waiting mark = iota
	accepted
	queued
	failed
)

// layout is everything outside an entry that its lines depend on.
type layout struct {
	width  int
	dark   bool
	colour bool
}

// changed discards the layout of the entry.
func (e *entry) changed() { e.lines = nil }

func (m *model) render(e *entry) []string {
	if e.lines != nil && e.shape == m.shape {
		return e.lines
	}
	e.shape = m.shape
	e.lines = m.draw(e)
	return e.lines
}

func (m *model) draw(e *entry) []string {
	s := &m.style
	width := m.shape.width
	clock := e.at.Format("15:04")
	switch e.kind {
	case mine:
		who := "You"
		if e.extra != "" {
			who += " on " + e.extra
		}
		return append(m.block(s.mine.Render(who)+s.dim.Render(" · "+clock+" ")+m.tick(e), wrap(e.text, width-2)), "")
	case reply:
		head := s.agent.Render("Agent") + s.dim.Render(" · "+clock)
		if e.extra != "" {
			head += s.dim.Render(" · " + e.extra)
		}
		if e.final { // a growing text is plain: that is cheap, and a partial table is not a table
			lines := m.md.render(e.text, width, paintOf(m.shape.dark, m.shape.colour))
			return append(append([]string{cut(head, width)}, lines...), "")
		}
		return append(m.block(head, wrap(e.text, width-2)), "")
	case upload:
		state := m.tick(e)
		if e.mark == waiting {
			if n := e.sent.Load(); n > 0 {
				state = s.dim.Render(fmt.Sprintf("%d %%", n*100/max(e.total, 1)))
			}
		}
		return append(m.block(s.mine.Render("You")+s.dim.Render(" · "+clock+" ")+state, wrap("📎 "+e.text, width-2)), "")
	case file:
		text := "📎 " + e.text
		if e.extra != "" {
			text += "\n" + e.extra
		}
		return append(m.block(s.agent.Render("Agent")+s.dim.Render(" · "+clock), wrap(text, width-2)), "")
	case done:
		return append(m.block(s.card.Render("Card")+s.dim.Render(" · "+clock), wrap(e.text, width-2)), "")
	case tool:
		return []string{s.dim.Render(cut("  ⚙ "+e.text, width))}
	default:
		lines := wrap(e.text, width)
		for i := range lines {
			lines[i] = s.dim.Render(lines[i])
		}
		return append(lines, "")
	}
}

func (m *model) tick(e *entry) string {
	switch e.mark {
	case accepted:
		return m.style.good.Render("✓")
	case queued:
		return m.style.warn.Render("✓ waiting for the agent")
	case failed:
		return m.style.bad.Render("✗ " + e.why)
	}
	return m.style.dim.Render("… sending")
}

// block returns a headline with an indented body.
func (m *model) block(head string, body []string) []string {
	out := make([]string, 0, len(body)+2)
	out = append(out, cut(head, m.shape.width))
	for _, l := range body {
		out = append(out, "  "+l)
	}
	return out
}

// keep is the number of entries in memory.
const keep = 2000

// transcript lays out all entries, with a line before each new day.
func (m *model) transcript() []string {
	var out []string
	day := ""
	for _, e := range m.entries {
		if d := e.at.Format("Monday, 2 January 2006"); d != day {
			day = d
			out = append(out, m.style.dim.Render(center("── "+d+" ──", m.shape.width)), "")
		}
		out = append(out, m.render(e)...)
	}
	return out
}

func center(s string, width int) string {
	return strings.Repeat(" ", max((width-lipgloss.Width(s))/2, 0)) + s
}

// add appends an entry.
func (m *model) add(e *entry) *entry {
	if e.at.IsZero() {
		e.at = m.now()
	}
	m.entries = append(m.entries, e)
	if len(m.entries) > keep {
		m.entries = append(m.entries[:0:0], m.entries[len(m.entries)-keep:]...)
	}
	return e
}

// find returns the newest entry of a kind with this id.
func (m *model) find(k kind, id string) *entry {
	for i := len(m.entries) - 1; i >= 0; i-- {
		if e := m.entries[i]; e.kind == k && e.id == id {
			return e
		}
	}
	return nil
}

func (m *model) say(format string, args ...any) {
	m.add(&entry{kind: notice, text: clean(fmt.Sprintf(format, args...))})
}
