package term

import (
	"strings"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

const keysHelp = `Enter sends. Alt+Enter or Ctrl+J starts a new line. ↑ and ↓ recall what you wrote.
PgUp, PgDn, Ctrl+Home and Ctrl+End scroll. Ctrl+X or Esc stops the agent. Ctrl+R connects now. Ctrl+D or Ctrl+C quits.
Cards: 1 to 9 or ↑↓, then Enter, answer a card. Press o to write your own answer, Tab for the next card. PgDn, PgUp and
Shift+↑↓ scroll a long card; you can allow something only after you have seen its end.
/steer TEXT adds to the running turn. /send PATH CAPTION sends a file (Tab completes the path). /stop stops the agent.
/revoke DEVICE revokes a newer device of yours. /profile NAME chooses a profile, where the agent has several. /keys shows
this help. /quit quits. Everything else goes to the agent.`

// keyPress handles a key.
func (m *model) keyPress(msg tea.KeyPressMsg) tea.Cmd {
	k := msg.String()
	if k != "tab" {
		m.choices = ""
	}
	switch k {
	case "ctrl+c":
		if m.input.Value() == "" && m.writing == "" {
			return tea.Quit
		}
		m.writing = ""
		m.setInput("")
		return nil
	case "ctrl+d":
		if m.input.Value() == "" {
			return tea.Quit
		}
	case "ctrl+r":
		m.chat.Reconnect()
		return nil
	case "ctrl+x":
		return m.stop()
	case "esc":
		switch {
		case m.writing != "":
			m.writing = ""
			m.setInput("")
		case m.busy():
			return m.stop()
		}
		return nil
	case "pgup", "pgdown":
		switch {
		case m.cardKey(k):
		case k == "pgup":
			m.view.PageUp()
		default:
			m.view.PageDown()
		}
		return nil
	case "ctrl+home":
		m.view.GotoTop()
		return nil
	case "ctrl+end":
		m.view.GotoBottom()
		return nil
	}
	if m.cardKey(k) {
		return nil
	}
	switch k {
	case "enter":
		return m.enter()
	case "tab":
		completed, choices := complete(m.input.Value())
		m.choices = ""
		if len(choices) > 1 {
			m.choices = line(strings.Join(choices, "  "))
		}
		if completed != m.input.Value() {
			m.setInput(completed)
		}
		return nil
	case "up":
		if m.input.Line() == 0 && m.recall(1) {
			return nil
		}
	case "down":
		if m.back > 0 && m.input.Line() == m.input.LineCount()-1 && m.recall(-1) {
			return nil
		}
	}
	var cmd tea.Cmd
	m.input, cmd = m.input.Update(msg)
	return cmd
}

// recall goes back (1) or forward (-1) in the user's earlier inputs.
func (m *model) recall(step int) bool {
	to := m.back + step
	if to < 0 || to > len(m.past) {
		return false
	}
	if m.back == 0 {
		m.draft = m.input.Value()
	}
	m.back = to
	if to == 0 {
		m.setInput(m.draft)
	} else {
		back := m.back
		m.setInput(m.past[len(m.past)-to])
		m.back = back
	}
	return true
}

func (m *model) setInput(s string) {
	m.input.SetValue(s)
	m.input.MoveToEnd()
	m.back = 0
}

// stop interrupts the turn in the background, because it may have to wait for a connection.
func (m *model) stop() tea.Cmd {
	ctx, c := m.ctx, m.chat
	return func() tea.Msg { return stoppedMsg{c.Stop(ctx)} }
}

// revoke revokes another device in the background.
func (m *model) revoke(id string) tea.Cmd {
	ctx, c := m.ctx, m.chat
	return func() tea.Msg { return revokedMsg{id, c.RevokeDevice(ctx, id)} }
}

// enter sends the input.
func (m *model) enter() tea.Cmd {
	text := m.input.Value()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	if m.writing != "" {
		for _, c := range m.cards {
			if c.id == m.writing {
				m.answer(c, frame.OtherOption, text, text)
			}
		}
		m.writing = ""
		m.setInput("")
		return nil
	}
	if c := m.card(); c != nil && c.own() && c.asked == "" && !strings.HasPrefix(text, "/") {
		m.answer(c, frame.OtherOption, text, text)
		m.setInput("")
		return nil
	}
	if n := len(m.past); n == 0 || m.past[n-1] != text {
		m.past = append(m.past, text)
	}
	var cmd tea.Cmd
	c, ours := own(text, m.chat)
	switch {
	case !ours:
		if !m.send(text) {
			return nil // it stays in the input
		}
	case c.name == "steer":
		if !m.send(c.arg, device.Steer()) {
			return nil
		}
	case c.name == "send":
		if !m.sendFile(c.arg) {
			return nil
		}
	case c.name == "stop":
		cmd = m.stop()
	case c.name == "revoke":
		cmd = m.revoke(c.arg)
	case c.name == "profile":
		ctx, d := m.ctx, m.chat
		cmd = func() tea.Msg { return profileMsg(profile(ctx, d, c.arg)) }
	case c.name == "keys":
		m.say("%s", keysHelp)
	case c.name == "quit":
		return tea.Quit
	}
	m.setInput("")
	m.refresh()
	m.view.GotoBottom()
	return cmd
}

func (m *model) send(text string, opts ...device.SendOption) bool {
	out, err := m.chat.Send(m.ctx, text, opts...)
	if err != nil {
		m.say("Not sent: %s", reason(err))
		return false
	}
	m.add(&entry{kind: mine, id: out.ID, text: clean(text)})
	return true
}

func (m *model) sendFile(arg string) bool {
	f, o, err := openFile(arg)
	if err != nil {
		m.say("Not sent: %s", reason(err))
		return false
	}
	e := &entry{kind: upload, text: line(o.Name) + ", " + size(o.Size), sent: new(atomic.Int64), total: o.Size}
	if o.Caption != "" {
		e.text += "\n" + clean(o.Caption)
	}
	o.Progress = func(sent, _ int64) { e.sent.Store(sent) }
	out, err := m.chat.SendFile(m.ctx, o)
	if err != nil {
		f.Close()
		m.say("Not sent: %s", reason(err))
		return false
	}
	// The device reads the file until the receipt, or until it closes.
	go func() { <-out.Done(); f.Close() }()
	e.id = out.ID
	m.add(e)
	return true
}
