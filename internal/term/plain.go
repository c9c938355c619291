package term

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/internal/plaintext"
)

// plain is the line mode. One goroutine runs it; lines and events come over channels.
//
// It is made for scripts: it handles a line when the agent is done with the previous one, or shows
// a card. Only /stop, /steer, /revoke and /quit take effect at once.
type plain struct {
	ctx context.Context
	d   *device.Device
	o   Options

	lines  <-chan string // closed at the end of the input
	readTo error         // after lines was closed: why reading failed, nil for the end of the input
	ahead  *string       // a line that waits for its turn
	eof    bool

	open     map[string]bool // messages whose turn has not ended
	answered bool            // something final came since the last message
	cards    []*card
	tools    map[string]string
	typing   bool      // by the events: the device may know the end of the turn before the last message is printed
	coded    bool      // the approval code was printed
	offline  bool      // the lost connection was reported
	agentOff time.Time // since when there is a known reason for the offline agent; otherwise zero
	quiet    time.Time // the last event
	bad      error     // the first error; the chat continues
	unshown  error     // printing failed: the server keeps the event
}

// silence is how long the line mode waits for more, without a typing indicator, after a reply that
// does not name its message.
const silence = 3 * time.Second

func runPlain(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &plain{ctx: ctx, d: o.Device, o: o, open: map[string]bool{}, tools: map[string]string{}, quiet: time.Now(), typing: o.Device.Activity().Typing}
	p.readLines()
	for _, out := range o.Device.Pending() {
		if _, ok := out.Frame.(*frame.Text); ok {
			p.open[out.ID] = true
		}
	}
	events := make(chan eventMsg)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		feed(ctx, o.Device, o.SaveDir, false, func(msg tea.Msg) {
			select {
			case events <- msg.(eventMsg):
			case <-ctx.Done():
			}
		})
	}()
	err := p.run(events, ended)
	cancel()
	<-ended
	return err
}

// readLines reads the input in a goroutine of its own. When reading cannot be interrupted, as on a
// terminal, the goroutine ends with the process.
func (p *plain) readLines() {
	lines := make(chan string)
	p.lines = lines
	go func() {
		defer close(lines)
		r := bufio.NewReader(plaintext.Reader(p.o.In))
		for {
			s, err := r.ReadString('\n')
			if s = strings.TrimRight(s, "\r\n"); s != "" || err == nil {
				select {
				case lines <- s:
				case <-p.ctx.Done():
					return
				}
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					p.readTo = err
				}
				return
			}
		}
	}()
}

func (p *plain) run(events <-chan eventMsg, ended <-chan struct{}) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.ahead != nil && p.ready() {
			s := *p.ahead
			p.ahead = nil
			p.input(s)
			continue
		}
		if p.ahead != nil && script(p.o.In) || p.eof {
			if err := p.stuck(); err != nil {
				return err
			}
		}
		if p.ahead == nil && p.eof && p.idle() {
			return errors.Join(p.bad, p.readTo)
		}
		lines := p.lines
		if p.ahead != nil || p.eof {
			lines = nil
		}
		select {
		case s, ok := <-lines:
			switch c, own := own(s, p.d); {
			case !ok:
				p.eof = true
			case own && c.name == "quit":
				return p.bad
			case own && c.name == "stop":
				if err := p.d.Stop(p.ctx); err != nil {
					p.problem(err)
				}
			case own && c.name == "steer":
				p.send(c.arg, device.Steer())
			case own && c.name == "revoke": // without waiting for the agent
				fmt.Fprintln(p.o.Err, revoked(c.arg, p.d.RevokeDevice(p.ctx, c.arg)))
			default:
				p.ahead = &s
			}
		case msg := <-events:
			p.quiet = time.Now()
			err := p.event(msg)
			if p.unshown != nil {
				return p.unshown // without an acknowledgement
			}
			msg.handled()
			if err != nil {
				return err
			}
		case <-ended:
			return context.Cause(p.ctx)
		case <-tick.C:
			if err := p.agentOffline(); err != nil {
				return err
			}
		}
	}
}

// agentOffline reports why the agent is offline, once each time. It ends a script that waits for a
// reply.
func (p *plain) agentOffline() error {
	why := ""
	if st := p.d.Status(); st.State == device.Online && st.Agent == frame.Away {
		why = p.o.why()
	}
	if why == "" {
		p.agentOff = time.Time{}
		return nil
	}
	if p.agentOff.IsZero() {
		p.agentOff = time.Now()
		fmt.Fprintf(p.o.Err, "the agent is offline: %s\n", why)
	}
	if script(p.o.In) && time.Since(p.agentOff) >= offlineLimit {
		return fmt.Errorf("the agent is offline: %s", why)
	}
	return nil
}

// ready reports whether the next line may be handled.
func (p *plain) ready() bool { return p.card() != nil || p.idle() }

// card returns the oldest card without an answer.
func (p *plain) card() *card {
	for _, c := range p.cards {
		if c.asked == "" {
			return c
		}
	}
	return nil
}

// idle reports whether the agent is done with all messages.
func (p *plain) idle() bool {
	if p.typing || p.d.Status().Unconfirmed > 0 || len(p.cards) > 0 {
		return false
	}
	// For replies that do not name their message: something came, and then nothing more for a
	// while.
	return len(p.open) == 0 || p.answered && time.Since(p.quiet) > silence
}

// stuck returns why there will be no reply unless a person does something.
func (p *plain) stuck() error {
	if p.coded && !p.d.Status().Approved {
		return ErrNotApproved
	}
	if p.eof && p.ahead == nil && p.card() != nil {
		return ErrUnanswered
	}
	return nil
}

// script reports whether the input is not a terminal, so that nobody is there to wait for an
// approval.
func script(in io.Reader) bool {
	f, ok := in.(*os.File)
	return !ok || !term.IsTerminal(f.Fd())
}

// input handles a line.
func (p *plain) input(s string) {
	if c := p.card(); c != nil && p.answer(c, strings.TrimSpace(s)) {
		return
	}
	c, own := own(s, p.d)
	switch {
	case strings.TrimSpace(s) == "":
	case own && c.name == "profile":
		p.print(profile(p.ctx, p.d, c.arg))
	case own && c.name == "keys":
		p.print("/steer TEXT adds to the running turn, /send PATH CAPTION sends a file, /stop stops the agent, /revoke DEVICE revokes a newer device of yours, /profile NAME chooses a profile, /quit quits. A number answers a card. Everything else goes to the agent.")
	case own && c.name == "send":
		f, o, err := openFile(c.arg)
		if err != nil {
			p.problem(err)
			return
		}
		out, err := p.d.SendFile(p.ctx, o)
		if err != nil {
			f.Close()
			p.problem(err)
			return
		}
		go func() { <-out.Done(); f.Close() }()
		p.sent(out.ID)
	default:
		p.send(s)
	}
}

func (p *plain) send(text string, opts ...device.SendOption) {
	out, err := p.d.Send(p.ctx, text, opts...)
	if err != nil {
		p.problem(err)
		return
	}
	p.sent(out.ID)
}

func (p *plain) sent(id string) {
	p.open[id] = true
	p.answered = false
	p.quiet = time.Now()
}

// answer takes a line as the answer to a card: a number, the name of an option, or a text where the
// card allows one.
func (p *plain) answer(c *card, s string) bool {
	option, text, label := "", "", s
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= len(c.options) {
		option, label = c.options[n-1].ID, c.options[n-1].Label
	} else {
		for _, o := range c.options {
			if strings.EqualFold(s, o.ID) || strings.EqualFold(s, o.Label) {
				option, label = o.ID, o.Label
			}
		}
	}
	switch {
	case c.own() && option == frame.OtherOption:
		p.print("Write your answer:")
		return true
	case option == "" && c.own() && s != "":
		option, text = frame.OtherOption, s
	case option == "":
		return false
	}
	out, err := p.d.Answer(p.ctx, c.id, option, text)
	if err != nil {
		p.problem(err)
		return true
	}
	c.asked, c.receipt = line(label), out.ID
	p.answered = false
	return true
}

// event prints an event. An error ends the chat.
func (p *plain) event(msg eventMsg) error {
	switch ev := msg.ev.(type) {
	case device.Message:
		if !ev.Final {
			return nil
		}
		p.over(ev.ReplyTo)
		p.print("%s", clean(ev.Text))
		p.coded = p.coded || p.d.Status().Pairing != ""
	case device.File:
		p.over(ev.ReplyTo)
		path, err := msg.path, msg.err
		if path == "" && err == nil {
			path, err = save(p.ctx, p.d, p.o.SaveDir, ev)
		}
		if err != nil {
			p.problem(fmt.Errorf("save %s: %w", safeName(ev.Filename), err))
			return nil
		}
		what, caption, _ := strings.Cut(describe(ev), "\n")
		p.print("[%s] %s", what, line(path))
		if caption != "" {
			p.print("%s", caption)
		}
	case device.CardShown:
		p.shown(ev)
	case device.CardDone:
		for i, c := range p.cards {
			if c.id == ev.ID {
				p.cards = append(p.cards[:i:i], p.cards[i+1:]...)
				p.print("(%s)", c.end(ev))
				break
			}
		}
	case device.Echo:
		p.print("(%s: %s)", peer(ev.From), echo(ev))
	case device.Notice:
		fmt.Fprintln(p.o.Err, "! "+announced(ev))
	case device.Receipt:
		p.receipt(ev)
	case device.Tool:
		if l := join([]string{line(ev.Name), line(ev.State), line(ev.Title)}); p.tools[ev.ID] != l {
			p.tools[ev.ID] = l
			fmt.Fprintln(p.o.Err, "· "+l)
		}
	case device.Activity:
		p.typing = ev.Typing
	case device.HistoryLost:
		fmt.Fprintln(p.o.Err, "some history may be missing or repeated")
	case device.Problem:
		p.problem(ev.Err)
	case device.StatusChanged:
		switch ev.State {
		case device.NoAccess, device.Replaced:
			return ev.Err
		case device.Waiting:
			if ev.Err != nil && !p.offline {
				p.offline = true
				fmt.Fprintf(p.o.Err, "offline: %s; retrying\n", reason(ev.Err))
			}
		case device.Online:
			p.offline = false
		}
	}
	return nil
}

// over records that a message was answered.
func (p *plain) over(id string) {
	delete(p.open, id)
	p.answered = true
}

func (p *plain) receipt(r device.Receipt) {
	if r.Err == nil {
		return
	}
	delete(p.open, r.ID)
	for _, c := range p.cards {
		if c.receipt == r.ID {
			c.asked, c.receipt = "", ""
		}
	}
	p.problem(r.Err)
}

func (p *plain) shown(ev device.CardShown) {
	c := newCard(ev.Prompt, time.Now())
	for i, old := range p.cards {
		if old.id == c.id {
			if !old.same(c) {
				p.cards[i] = c
				p.ask(c)
			}
			return
		}
	}
	p.cards = append(p.cards, c)
	p.ask(c)
}

// ask prints a card: all of its texts, then the options. A plain one-line command is part of the
// headline.
func (p *plain) ask(c *card) {
	command, head := c.command.Folded(), c.title()
	if len(c.command.Segments) > 0 {
		head = "Allow this command?"
		if !c.command.Odd() && !strings.ContainsAny(command, "\n␉") {
			head += " " + command
			command = ""
		}
	}
	p.print("? %s", head)
	p.indented(c.text, "  ", head)
	if command != "" {
		mark := "  $ "
		for l := range strings.SplitSeq(strings.TrimSuffix(command, "\n"), "\n") {
			p.print("%s%s", mark, l)
			mark = "  > "
		}
	}
	p.indented(c.about, "  ", head)
	for _, warning := range c.warnings() {
		p.print("  ! %s", warning)
	}
	for i, o := range c.options {
		p.print("  %d) %s", i+1, o.Label)
	}
	if wait := wait(p.d.Status(), time.Now()); wait != "" {
		fmt.Fprintln(p.o.Err, wait)
	}
}

// indented prints a text of a card unless it equals the headline.
func (p *plain) indented(s frame.Shown, indent, head string) {
	text := strings.ReplaceAll(strings.TrimRight(s.Folded(), "\n"), "\t", "    ")
	if text != "" && line(text) != head {
		p.print("%s%s", indent, strings.ReplaceAll(text, "\n", "\n"+indent))
	}
}

func (p *plain) print(format string, args ...any) {
	if _, err := fmt.Fprintf(p.o.Out, format+"\n", args...); err != nil && p.unshown == nil {
		p.unshown = fmt.Errorf("could not write the reply; the server keeps it: %w", err)
	}
}

// problem prints an error and keeps the first one for the end.
func (p *plain) problem(err error) {
	fmt.Fprintln(p.o.Err, "! "+reason(err))
	if p.bad == nil && !errors.Is(err, os.ErrClosed) {
		p.bad = err
	}
}
