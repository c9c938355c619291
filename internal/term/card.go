package term

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// card is an open card. Its texts are prepared for display; its ids are unchanged.
type card struct {
	id       string
	kind     string
	text     frame.Shown
	command  frame.Shown
	about    frame.Shown
	options  []frame.Option
	shown    time.Time
	deadline time.Time // zero: unknown
	selected int
	asked    string // the answer under way
	receipt  string // id of that answer

	odd         bool // the server says that the card needs a closer look
	hiddenLabel bool // an option's label has characters that do not show as themselves

	lines  []string // all texts, laid out for shape
	shape  layout
	scroll int  // the first line on the screen
	page   int  // the number of lines on the screen
	read   bool // the last line was on the screen
}

func newCard(p frame.Prompt, now time.Time) *card {
	c := &card{id: p.ID, kind: p.Kind, text: frame.Visible(p.Text), command: frame.VisibleCommand(p.Command), about: frame.Visible(p.Description), shown: now, odd: p.Odd}
	for _, o := range p.Options {
		label := line(o.Label)
		if label == "" {
			label = line(o.ID)
		}
		c.hiddenLabel = c.hiddenLabel || frame.Visible(cmp.Or(o.Label, o.ID)).Hidden
		c.options = append(c.options, frame.Option{ID: o.ID, Label: label, Style: o.Style})
	}
	for i, o := range c.options { // Enter on an empty line must not allow a command
		if p.Kind == frame.ExecApproval && o.Style == "danger" {
			c.selected = i
		}
	}
	// Use the seconds left, because the server's clock may differ from ours.
	if p.TimeoutSeconds > 0 {
		c.deadline = now.Add(time.Duration(p.TimeoutSeconds) * time.Second)
	} else if !p.ExpiresAt.IsZero() {
		c.deadline = p.ExpiresAt
	}
	return c
}

// same reports whether a repeated card still asks the same question.
func (c *card) same(other *card) bool {
	return c.kind == other.kind && c.text.String() == other.text.String() && c.command.String() == other.command.String() &&
		c.about.String() == other.about.String() && slices.Equal(c.options, other.options)
}

// title returns the card in one line.
func (c *card) title() string {
	switch {
	case len(c.command.Segments) > 0:
		return "Allow this command? " + line(c.command.Folded())
	case len(c.text.Segments) > 0:
		return line(c.text.Folded())
	}
	return "Card of kind " + line(c.kind)
}

func (c *card) label(option string) string {
	for _, o := range c.options {
		if o.ID == option {
			return o.Label
		}
	}
	return line(option)
}

// own reports whether the user may answer with a text.
func (c *card) own() bool { return c.kind == frame.Clarify }

// help tells how to answer the card.
func (c *card) help() string {
	if c.own() {
		return "Number or ↑↓, then Enter; or write your own answer"
	}
	return "Number or ↑↓, then Enter"
}

// end tells how the card ended.
func (c *card) end(d device.CardDone) string {
	said := c.label(d.OptionID)
	switch {
	case d.Expired && d.OptionID == "":
		return "expired"
	case d.Expired:
		return "expired: " + said
	case c.asked == "" && d.By != nil:
		return "answered on " + peer(*d.By) + ": " + said
	case c.asked == "":
		return "answered elsewhere: " + said
	case d.OptionID == frame.OtherOption:
		return "answered: " + c.asked
	}
	return "answered: " + said
}

// left returns the remaining time.
func (c *card) left(now time.Time) string {
	if c.deadline.IsZero() {
		return ""
	}
	s := int(c.deadline.Sub(now).Round(time.Second).Seconds())
	if s <= 0 {
		return "time is up"
	}
	if s >= 60 {
		return fmt.Sprintf("%d:%02d left", s/60, s%60)
	}
	return fmt.Sprintf("%d s left", s)
}

// card returns the card that keys answer.
func (m *model) card() *card {
	if len(m.cards) == 0 {
		return nil
	}
	m.chosen = min(max(m.chosen, 0), len(m.cards)-1)
	return m.cards[m.chosen]
}

// reflex is how long a new card ignores keys: the user may have been typing something else.
const reflex = 400 * time.Millisecond

// cardKey handles a key of the card. It reports false for any other key.
func (m *model) cardKey(key string) bool {
	c := m.card()
	if c == nil || m.input.Value() != "" || m.writing != "" {
		return false
	}
	switch key {
	case "tab":
		m.chosen = (m.chosen + 1) % len(m.cards)
	case "shift+up":
		c.move(-1)
	case "shift+down":
		c.move(1)
	case "pgup", "pgdown":
		if len(c.lines) <= c.page {
			return false // they scroll the transcript
		}
		c.move(map[string]int{"pgup": -1, "pgdown": 1}[key] * max(c.page-1, 1))
	case "up", "left":
		c.selected = max(c.selected-1, 0)
	case "down", "right":
		c.selected = min(c.selected+1, len(c.options)-1)
	case "o":
		if !c.own() || c.asked != "" {
			return false
		}
		m.writing = c.id
	case "enter":
		if c.selected >= 0 && c.selected < len(c.options) {
			m.choose(c, c.options[c.selected])
		}
	default:
		n, err := strconv.Atoi(key)
		if err != nil || n < 1 || n > 9 {
			return false
		}
		c.selected = min(n, len(c.options)) - 1 // Enter confirms: a digit may be the beginning of a message
	}
	return true
}

// move scrolls the card.
func (c *card) move(by int) { c.scroll = min(max(c.scroll+by, 0), max(len(c.lines)-c.page, 0)) }

// locked reports whether the user must read the card to its end before choosing the option.
func (c *card) locked(o frame.Option) bool { return !c.read && frame.Grants(c.kind, o.ID) }

func (m *model) choose(c *card, o frame.Option) {
	switch {
	case c.asked != "" || m.now().Sub(c.shown) < reflex || c.locked(o):
	case c.own() && o.ID == frame.OtherOption:
		m.writing = c.id
	default:
		m.answer(c, o.ID, "", o.Label)
	}
}

func (m *model) answer(c *card, option, text, label string) {
	if wait := wait(m.status, m.now()); wait != "" {
		m.say("Not sent: %s", wait)
		return
	}
	o, err := m.chat.Answer(m.ctx, c.id, option, text)
	if err != nil {
		m.say("Could not send the answer: %s", reason(err))
		return
	}
	c.asked, c.receipt = line(label), o.ID
}

func (m *model) cardShown(p device.CardShown) {
	for i, c := range m.cards {
		if c.id == p.ID { // a repeated card, with the remaining time
			n := newCard(p.Prompt, m.now())
			if c.same(n) {
				c.deadline = n.deadline
			} else { // another question under the same id must be read again
				m.cards[i] = n
			}
			return
		}
	}
	m.cards = append(m.cards, newCard(p.Prompt, m.now()))
}

func (m *model) cardDone(d device.CardDone) {
	i := slices.IndexFunc(m.cards, func(c *card) bool { return c.id == d.ID })
	if i < 0 {
		return
	}
	c := m.cards[i]
	m.cards = slices.Delete(m.cards, i, i+1)
	if m.chosen > i {
		m.chosen--
	}
	if m.writing == c.id {
		m.writing = ""
	}
	m.add(&entry{kind: done, id: c.id, text: c.title() + "\n→ " + c.end(d)})
}
