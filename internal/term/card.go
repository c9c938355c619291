package term

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// card is a question that is open. Texts are clean; ids are as they came.
type card struct {
	id       string
	kind     string
	text     string
	command  string
	about    string
	options  []frame.Option
	shown    time.Time
	deadline time.Time // zero: none known
	selected int
	asked    string // what was answered here and is on its way
	receipt  string // id of the answer
}

func newCard(p frame.Prompt, now time.Time) *card {
	c := &card{id: p.ID, kind: p.Kind, text: clean(p.Text), command: clean(p.Command), about: clean(p.Description), shown: now}
	for _, o := range p.Options {
		label := line(o.Label)
		if label == "" {
			label = line(o.ID)
		}
		c.options = append(c.options, frame.Option{ID: o.ID, Label: label, Style: o.Style})
	}
	for i, o := range c.options { // Enter on an empty line must not allow a command
		if p.Kind == frame.ExecApproval && o.Style == "danger" {
			c.selected = i
		}
	}
	// The seconds left are the server's; its clock may differ from ours.
	if p.TimeoutSeconds > 0 {
		c.deadline = now.Add(time.Duration(p.TimeoutSeconds) * time.Second)
	} else if !p.ExpiresAt.IsZero() {
		c.deadline = p.ExpiresAt
	}
	return c
}

// title is the card in one line.
func (c *card) title() string {
	switch {
	case c.command != "":
		return "Allow this command? " + line(c.command)
	case c.text != "":
		return line(c.text)
	}
	return "A question of kind " + line(c.kind)
}

func (c *card) label(option string) string {
	for _, o := range c.options {
		if o.ID == option {
			return o.Label
		}
	}
	return line(option)
}

// own reports whether the person may answer in their own words.
func (c *card) own() bool { return c.kind == frame.Clarify }

// help says how the card is answered.
func (c *card) help() string {
	if c.own() {
		return "number or ↑↓, then Enter; or write your own answer"
	}
	return "number or ↑↓, then Enter"
}

// end says how the card ended, in words.
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

// left is the time that is left, in words.
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

// cardPanel draws the chosen card above the input.
func (m *model) cardPanel() []string {
	c := m.card()
	if c == nil {
		return nil
	}
	width := max(m.shape.width-4, 10)
	var body []string
	head := m.style.card.Render(map[string]string{frame.ExecApproval: "Allow this command?", frame.SlashConfirm: "Confirm", frame.Clarify: "Question"}[c.kind])
	if left := c.left(m.now()); left != "" {
		head += m.style.dim.Render("  " + left)
	}
	if len(m.cards) > 1 {
		head += m.style.dim.Render(fmt.Sprintf("  card %d of %d, Tab for the next", m.chosen+1, len(m.cards)))
	}
	body = append(body, cut(head, width))
	limit := max(m.height/3, 3) // a long command may not push the choices off the screen
	text := []string{}
	if c.text != "" {
		text = append(text, wrap(c.text, width)...)
	}
	if c.command != "" {
		for _, l := range wrap(c.command, width-2) {
			text = append(text, m.style.bold.Render("$ "+l))
		}
	}
	if c.about != "" {
		text = append(text, wrap(c.about, width)...)
	}
	if len(text) > limit {
		over := len(text) - limit
		from := min(m.cardScroll, over)
		text = text[from : from+limit]
		text = append(text, m.style.warn.Render(fmt.Sprintf("(%d more lines: Shift+↑ and Shift+↓)", over)))
	}
	body = append(body, text...)
	for i, o := range c.options {
		l := fmt.Sprintf("%d %s", i+1, o.Label)
		style := m.style.dim
		switch o.Style {
		case "danger":
			style = m.style.bad
		case "primary":
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
		body = append(body, m.style.dim.Render(cut("sending: "+c.asked, width)))
	case m.writing == c.id:
		body = append(body, m.style.dim.Render("your own words below, Enter sends, Esc leaves"))
	case c.own():
		body = append(body, m.style.dim.Render(cut("number or ↑↓ and Enter, o for your own words", width)))
	default:
		body = append(body, m.style.dim.Render(cut(c.help(), width)))
	}
	return strings.Split(m.style.box.Width(m.shape.width).Render(strings.Join(body, "\n")), "\n")
}

// card is the one that keys answer.
func (m *model) card() *card {
	if len(m.cards) == 0 {
		return nil
	}
	m.chosen = min(max(m.chosen, 0), len(m.cards)-1)
	return m.cards[m.chosen]
}

// reflex is how long a new card takes no keys: what the person was just typing is no answer.
const reflex = 400 * time.Millisecond

// cardKey answers with a key; false: it is no key for the card.
func (m *model) cardKey(key string) bool {
	c := m.card()
	if c == nil || m.input.Value() != "" || m.writing != "" {
		return false
	}
	switch key {
	case "tab":
		m.chosen = (m.chosen + 1) % len(m.cards)
		m.cardScroll = 0
	case "shift+up", "shift+down":
		m.cardScroll = max(m.cardScroll+map[string]int{"shift+up": -1, "shift+down": 1}[key], 0)
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

func (m *model) choose(c *card, o frame.Option) {
	switch {
	case c.asked != "" || m.now().Sub(c.shown) < reflex:
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
		m.say("The answer could not be sent: %s", reason(err))
		return
	}
	c.asked, c.receipt = line(label), o.ID
}

func (m *model) cardShown(p device.CardShown) {
	for _, c := range m.cards {
		if c.id == p.ID { // shown again: the same card with the time that is left
			n := newCard(p.Prompt, m.now())
			c.deadline = n.deadline
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
	m.cardScroll = 0
	if m.writing == c.id {
		m.writing = ""
	}
	m.add(&entry{kind: done, id: c.id, text: c.title() + "\n→ " + c.end(d)})
}
