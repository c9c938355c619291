package term

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/spinner"
	"charm.land/bubbles/v2/textarea"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// chat is the part of a *device.Device that the model uses.
type chat interface {
	Send(ctx context.Context, text string, opts ...device.SendOption) (*device.Outgoing, error)
	SendFile(ctx context.Context, f device.FileOptions, opts ...device.SendOption) (*device.Outgoing, error)
	Answer(ctx context.Context, cardID, option, text string) (*device.Outgoing, error)
	Stop(ctx context.Context) error
	Reconnect()
	Status() device.Status
	Activity() device.Activity
	Pending() []*device.Outgoing
	RevokeDevice(ctx context.Context, id string) error
	Profiles(ctx context.Context) ([]device.Profile, error)
	ChooseProfile(ctx context.Context, name string) error
	Download(ctx context.Context, f device.File, w io.Writer) (int64, error)
}

// model is the whole screen. Only bubbletea's goroutine touches it.
type model struct {
	ctx  context.Context
	chat chat
	opts Options
	now  func() time.Time

	width, height int
	shape         layout
	style         palette
	md            markdown
	input         textarea.Model
	view          viewport.Model
	spin          spinner.Model
	spinning      bool
	ticking       bool

	status   device.Status
	activity device.Activity
	entries  []*entry
	growing  map[string]bool // replies that are not final yet
	cards    []*card
	chosen   int
	writing  string // id of the card for which the user writes an answer

	past    []string // the user's inputs, oldest first
	back    int      // position in past, counted from the end; 0: not recalling
	draft   string   // the input before recalling
	choices string   // paths that Tab offers
	unread  bool     // there are new messages below the screen
}

// Messages of the model.
type (
	eventMsg struct {
		ev      device.Event
		path    string // of a file: where it was saved
		err     error
		handled func()
	}
	savedMsg struct { // the download of a file ended
		id, path string
		err      error
	}
	tickMsg    struct{}
	stoppedMsg struct{ err error }
	revokedMsg struct {
		id  string
		err error
	}
	profileMsg string // the result of /profile
)

func newModel(ctx context.Context, c chat, o Options) *model {
	m := &model{
		ctx: ctx, chat: c, opts: o, now: time.Now, width: 80, height: 24, growing: map[string]bool{},
		style: newPalette(!o.NoColor), input: textarea.New(), view: viewport.New(), spin: spinner.New(spinner.WithSpinner(spinner.MiniDot)),
		status: c.Status(), activity: c.Activity(),
	}
	m.shape = layout{width: 80, dark: true, colour: !o.NoColor}
	m.input.ShowLineNumbers = false
	m.input.Prompt = "› "
	m.input.Placeholder = "Write a message. Enter sends it."
	m.input.CharLimit = frame.MaxText
	m.input.DynamicHeight, m.input.MinHeight, m.input.MaxHeight = true, 1, 6
	m.input.SetVirtualCursor(false)
	if o.NoColor {
		m.input.SetStyles(textarea.Styles{})
	}
	m.input.KeyMap.InsertNewline = key.NewBinding(key.WithKeys("alt+enter", "ctrl+j", "shift+enter"))
	m.view.MouseWheelEnabled = true
	for _, out := range c.Pending() {
		m.restore(out)
	}
	m.resize(80, 24)
	return m
}

// restore shows a message that an earlier run left unsent.
func (m *model) restore(out *device.Outgoing) {
	switch f := out.Frame.(type) {
	case *frame.Text:
		m.add(&entry{kind: mine, id: out.ID, text: clean(f.Text)})
	case *frame.Audio:
		m.add(&entry{kind: mine, id: out.ID, text: "🎤 voice message"})
	case *frame.Media:
		m.add(&entry{kind: upload, id: out.ID, text: line(f.Filename), sent: new(atomic.Int64), total: f.Size})
	}
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.input.Focus(), tea.RequestBackgroundColor, m.animate())
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height)
		return m, nil
	case tea.BackgroundColorMsg:
		m.shape.dark = msg.IsDark()
		if m.shape.colour {
			m.input.SetStyles(textarea.DefaultStyles(m.shape.dark))
		}
	case eventMsg:
		cmd = m.event(msg)
		m.refresh()
		if msg.handled != nil {
			msg.handled()
		}
	case savedMsg:
		m.saved(msg)
	case stoppedMsg:
		if msg.err != nil {
			m.say("Could not stop: %s", reason(msg.err))
		}
	case revokedMsg:
		m.say("%s", revoked(msg.id, msg.err))
	case profileMsg:
		m.say("%s", string(msg))
	case tickMsg:
		m.ticking = false
		for _, e := range m.entries {
			if e.kind == upload && e.mark == waiting {
				e.changed()
			}
		}
	case spinner.TickMsg:
		m.spinning = false
		if m.busy() {
			m.spin, cmd = m.spin.Update(msg)
			m.spinning = cmd != nil
		}
		return m, cmd // nothing else changes
	case tea.KeyPressMsg:
		cmd = m.keyPress(msg)
	case tea.MouseWheelMsg:
		m.view, cmd = m.view.Update(msg)
		m.unread = m.unread && !m.view.AtBottom()
		return m, cmd
	default:
		m.input, cmd = m.input.Update(msg) // paste, the blinking cursor
	}
	m.refresh()
	return m, tea.Batch(cmd, m.animate())
}

// busy reports whether the agent works.
func (m *model) busy() bool {
	return m.activity.Typing || m.activity.Avatar == "thinking" || m.activity.Avatar == "speaking" || len(m.growing) > 0
}

// animate starts the timers of everything that moves. Without any, an idle chat costs nothing.
func (m *model) animate() tea.Cmd {
	var cmds []tea.Cmd
	if m.busy() && !m.spinning {
		m.spinning = true
		cmds = append(cmds, m.spin.Tick)
	}
	counting := len(m.cards) > 0 || m.status.State == device.Waiting
	for _, e := range m.entries[max(len(m.entries)-50, 0):] {
		counting = counting || e.kind == upload && e.mark == waiting
	}
	if counting && !m.ticking {
		m.ticking = true
		cmds = append(cmds, tea.Tick(500*time.Millisecond, func(time.Time) tea.Msg { return tickMsg{} }))
	}
	return tea.Batch(cmds...)
}

// event applies one event of the device.
func (m *model) event(msg eventMsg) tea.Cmd {
	switch ev := msg.ev.(type) {
	case device.Message:
		m.message(ev)
	case device.File:
		e := m.add(&entry{kind: file, id: ev.ID, text: describe(ev)})
		switch {
		case msg.err != nil:
			e.extra = "not saved: " + reason(msg.err)
		case msg.path != "":
			e.extra = "saved as " + line(msg.path)
		default:
			e.extra = "downloading …"
			ctx, c, dir := m.ctx, m.chat, m.opts.SaveDir
			return func() tea.Msg {
				path, err := save(ctx, c, dir, ev)
				return savedMsg{ev.ID, path, err}
			}
		}
	case device.CardShown:
		m.cardShown(ev)
	case device.CardDone:
		m.cardDone(ev)
	case device.Echo:
		m.add(&entry{kind: mine, id: "echo " + ev.ID, text: echo(ev), mark: accepted, extra: peer(ev.From)})
	case device.Notice:
		m.say("%s", announced(ev))
	case device.Receipt:
		m.receipt(ev)
	case device.Activity:
		m.activity = ev
	case device.Tool:
		m.tool(ev)
	case device.StatusChanged:
		if m.status.State == device.Online && ev.State != device.Online {
			clear(m.growing) // unfinished replies come again over the next connection
		}
		m.status = ev.Status
	case device.HistoryLost:
		m.say("Some history may be missing or repeated.")
	case device.Problem:
		m.say("%s", reason(ev.Err))
	}
	return nil
}

func (m *model) message(ev device.Message) {
	e := m.find(reply, ev.ID)
	if e == nil || e.final && !ev.Final {
		e = m.add(&entry{kind: reply, id: ev.ID})
	}
	e.text, e.final = clean(ev.Text), ev.Final
	var extra []string
	if ev.Source == frame.SourceCron {
		extra = append(extra, strings.TrimSpace("scheduled "+line(ev.Job)))
	}
	if ev.Interrupted {
		extra = append(extra, "interrupted")
	}
	e.extra = join(extra)
	e.changed()
	if ev.Final {
		delete(m.growing, ev.ID)
	} else {
		m.growing[ev.ID] = true
	}
	m.unread = m.unread || !m.view.AtBottom()
}

// tool shows all events of one tool in one line.
func (m *model) tool(ev device.Tool) {
	e := m.find(tool, ev.ID)
	if e == nil {
		e = m.add(&entry{kind: tool, id: ev.ID})
	}
	what := line(ev.Title)
	if what == "" {
		what = line(ev.Text)
	}
	e.text = join([]string{line(ev.Name), line(ev.State), what})
	e.changed()
}

func (m *model) receipt(ev device.Receipt) {
	for _, c := range m.cards {
		if c.receipt == ev.ID && ev.Err != nil { // the card stays open
			c.asked, c.receipt = "", ""
			m.say("The server rejected the answer: %s", reason(ev.Err))
			return
		}
	}
	e := m.find(mine, ev.ID)
	if e == nil {
		e = m.find(upload, ev.ID)
	}
	if e == nil {
		return
	}
	switch {
	case ev.Err != nil:
		e.mark, e.why = failed, reason(ev.Err)
	case ev.Queued:
		e.mark = queued
	default:
		e.mark = accepted
	}
	e.changed()
}

func (m *model) saved(msg savedMsg) {
	if e := m.find(file, msg.id); e != nil {
		e.extra = "saved as " + line(msg.path)
		if msg.err != nil {
			e.extra = "download failed: " + reason(msg.err)
		}
		e.changed()
	}
}
