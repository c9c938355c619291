package chaos

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/chaos/handset"
	"hermes-mobile/test/gateway"
)

// maxOpen is how many messages of a phone may be without their reply at once.
const maxOpen = 4

// ownProcesses is how many of the phones are processes, where things are done to them.
const ownProcesses = 2

// The phones that share the conversation of the first of them, where things are done to phones. The other is a process.
const (
	sharedLead   = phones - ownProcesses - 1
	sharedMember = phones - ownProcesses
)

// message is something a phone sent.
type message struct {
	id, text string
	want     string         // the reply, where it follows from the text
	sha      string         // of the file that went with it
	receipt  *handset.Event // nil: none was seen
	again    bool           // a file that was sent again since there was no room: it has no order any more
}

// seen is something that came out of a phone's event loop.
type seen struct {
	id, text    string
	interrupted bool
	file        string // sha256
	replyTo     string
}

// card is what a phone knows of a question.
type card struct {
	id, text string
	answers  []string // what the person chose, in order
	done     []device.CardDone
}

// app is the program on a phone: in this process, with a store in memory, or a process of its own.
type app interface {
	send(m *message) error
	sendFile(m *message) error
	answer(card, option string) error
	reconnect()
	pending() int // what has no receipt
	online() bool // and so is the agent
	close(ctx context.Context)
}

// echo is what a phone was told that another device of its conversation said.
type echo struct{ from, id, text string }

// phone is a device under load.
type phone struct {
	w    *world
	id   string
	user string // whose it is; empty: its own
	chat string // the device whose conversation it takes part in: mostly its own
	app  app
	own  *process   // app, where it is a process of its own; else nil
	net  *network   // between it and the server; nil: none
	rng  *rand.Rand // of the load loop

	mayTap time.Time  // a device that is new for its user answers cards from then on
	asleep sync.Mutex // held while the app stands still

	mu     sync.Mutex
	sent   []*message
	ids    map[string]*message // of them
	got    []seen
	cards  map[string]*card
	echos  []echo
	open   map[string]time.Time // numbers of messages without reply, and when they were sent
	slow   time.Duration        // the longest wait for a reply
	slowN  string               // of that message
	slowTo time.Time            // when it came
	notes  []string             // what should not happen
	state  map[device.State]int
	told   bool // the last status said 1001
	away   int  // how often the server said that it goes away (1001)
	taps   sync.WaitGroup
}

// newcomer is longer than a device that joined a conversation may not answer cards.
const newcomer = 65 * time.Second

func newPhone(w *world, n int) (*phone, error) {
	p := &phone{w: w, id: fmt.Sprintf("phone-%d", n), rng: rand.New(rand.NewPCG(w.seed, uint64(n)+1)), cards: map[string]*card{},
		ids: map[string]*message{}, open: map[string]time.Time{}, state: map[device.State]int{}}
	p.chat = p.id
	setup := handset.Setup{URL: "ws://" + w.srv.addr() + "/ws", Token: appToken, ID: p.id, NoDelta: n%2 == 1}
	if w.bad && (n == sharedLead || n == sharedMember) {
		p.chat, p.user = fmt.Sprintf("phone-%d", sharedLead), "owner-of-two"
		setup.User = p.user
		if n == sharedMember { // the first device of a user may answer cards at once
			p.mayTap = time.Now().Add(newcomer)
			w.online(w.phones[sharedLead])
		}
	}
	if w.bad {
		var err error
		if p.net, err = newNetwork(w.srv.addr()); err != nil {
			return nil, err
		}
		setup.URL = "ws://" + p.net.Addr().String() + "/ws"
		if n >= phones-ownProcesses {
			if p.own, err = newProcess(p, setup); err != nil {
				return nil, err
			}
			p.app = p.own
			return p, nil
		}
	}
	cfg := setup.Config()
	if !w.bad {
		cfg.Heartbeat, cfg.PongTimeout, cfg.DialTimeout, cfg.AckTimeout, cfg.Backoff.Max = 0, 0, 0, 0, 200*time.Millisecond
	}
	dev, err := device.Open(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	p.app = inside{dev}
	w.loops.Go(func() {
		for ev, err := range dev.Events(context.Background()) {
			if err != nil {
				return // closed
			}
			p.hear(handset.Pack(ev))
		}
	})
	return p, nil
}

// inside is an app in this process.
type inside struct{ dev *device.Device }

func (a inside) send(m *message) error {
	_, err := a.dev.Send(context.Background(), m.text, device.WithID(m.id))
	return err
}

func (a inside) sendFile(m *message) error {
	_, err := a.dev.SendFile(context.Background(), device.FileOptions{Name: m.id + ".bin", Mime: "application/octet-stream", Data: m.file(), Caption: m.text}, device.WithID(m.id))
	return err
}

func (a inside) answer(card, option string) error {
	_, err := a.dev.Answer(context.Background(), card, option, "")
	return err
}

func (a inside) reconnect()   { a.dev.Reconnect() }
func (a inside) pending() int { return len(a.dev.Pending()) }

func (a inside) online() bool {
	s := a.dev.Status()
	return s.State == device.Online && s.Agent == frame.Online
}

func (a inside) close(ctx context.Context) { _ = a.dev.Close(ctx) }

// hear is what the app does with an event; nil is one that it does nothing with.
func (p *phone) hear(ev *handset.Event) {
	p.awake()
	if ev == nil {
		return
	}
	p.mu.Lock()
	switch {
	case ev.Message != nil:
		m := ev.Message
		p.got = append(p.got, seen{id: m.ID, text: m.Text, interrupted: m.Interrupted, replyTo: m.ReplyTo})
		p.answeredLocked(m.Text, m.Interrupted)
	case ev.File != nil:
		f := ev.File
		if ev.Err != "" {
			p.notes = append(p.notes, fmt.Sprintf("the file %q came damaged: %s", f.Caption, ev.Err))
		}
		p.got = append(p.got, seen{id: f.ID, text: f.Caption, replyTo: f.ReplyTo, file: gateway.SHA(f.Data)})
	case ev.Shown != nil:
		p.cardLocked(ev.Shown)
	case ev.Done != nil:
		p.cardDoneLocked(ev.Done)
	case ev.Echo != nil:
		p.echos = append(p.echos, echo{ev.Echo.From.ID, ev.Echo.ID, ev.Echo.Text})
	case ev.Lost != nil:
		p.notes = append(p.notes, "the server said that history was lost")
	case ev.Receipt != nil:
		p.receiptLocked(ev)
	case ev.Status != nil:
		p.statusLocked(ev.Status)
	case ev.Problem != nil:
		// Parts that were on their way when the first of a file was refused are refused, too: no_space.
		if c := ev.Problem.Code; c != frame.Internal && c != frame.NoSpace && !(p.w.bad && c == frame.RateLimited) {
			p.notes = append(p.notes, "problem: "+ev.Problem.Text)
		}
	}
	p.mu.Unlock()
	if p.w.bad {
		p.tell(ev)
	}
	p.w.changed()
}

// tell puts what a phone hears of its way to the server into the trace of its conversation.
func (p *phone) tell(ev *handset.Event) {
	gw := p.w.gwOf(p.chat)
	switch {
	case ev.Receipt != nil:
		gw.NoteIn(p.chat, fmt.Sprintf("%s has the receipt of %s", p.id, ev.Receipt.ID))
	case ev.Status != nil && ev.Status.State != device.Connecting:
		gw.NoteIn(p.chat, fmt.Sprintf("%s is %s %s", p.id, ev.Status.State, ev.Status.Err))
	case ev.Problem != nil:
		gw.NoteIn(p.chat, fmt.Sprintf("%s has a problem: %s", p.id, ev.Problem.Text))
	}
}

func (p *phone) cardDoneLocked(done *device.CardDone) {
	c := p.cards[done.ID]
	switch {
	case c == nil:
		p.notes = append(p.notes, "prompt_done for card "+done.ID+", which was never shown here")
	case p.own != nil && len(c.done) > 0 && c.done[0].OptionID == done.OptionID && c.done[0].Expired == done.Expired:
		// A new life of the process knows no cards: a late answer is told once more what was decided.
	default:
		c.done = append(c.done, *done)
	}
}

func (p *phone) receiptLocked(ev *handset.Event) {
	m := p.ids[ev.Receipt.ID]
	if m != nil && m.sha != "" && strings.HasPrefix(ev.Err, string(frame.NoSpace)) { // the disk is full: the person taps "send again"
		m.again = true
		p.taps.Go(func() {
			time.Sleep(100*time.Millisecond + rand.N(400*time.Millisecond))
			p.sending(m, p.app.sendFile(m))
		})
		return
	}
	if ev.Err != "" {
		p.notes = append(p.notes, fmt.Sprintf("%s was refused: %s", ev.Receipt.ID, ev.Err))
	}
	if m != nil {
		m.receipt = ev
	}
}

func (p *phone) statusLocked(s *handset.Status) {
	p.state[s.State]++
	// A slow loop sees the newest status only, but the reason stays in it until the next attempt ends.
	if s.Away && !p.told {
		p.away++
	}
	p.told = s.Away
	switch {
	case s.State == device.Replaced && p.w.bad:
		p.taps.Go(p.app.reconnect) // the person takes this one up again
	case s.State == device.NoAccess || s.State == device.Replaced:
		p.notes = append(p.notes, "the device stopped trying: "+s.Err)
	}
}

// awake waits while the app stands still.
func (p *phone) awake() {
	p.asleep.Lock()
	defer p.asleep.Unlock()
}

// answeredLocked notes that the reply to a message came.
func (p *phone) answeredLocked(text string, interrupted bool) {
	text, _ = strings.CutPrefix(text, gateway.RecoveredPrefix)
	if f := strings.Fields(text); len(f) > 1 && !interrupted {
		if at, ok := p.open[f[1]]; ok && time.Since(at) > p.slow {
			p.slow, p.slowN, p.slowTo = time.Since(at), f[1], time.Now()
		}
		delete(p.open, f[1])
	}
}

// cardLocked answers a card that was not seen before: after a moment, and now and then twice, with different options.
func (p *phone) cardLocked(ev *device.CardShown) {
	if p.cards[ev.ID] != nil {
		return
	}
	c := &card{id: ev.ID, text: ev.Text}
	p.cards[ev.ID] = c
	if time.Now().Before(p.mayTap) {
		return // the other device of the conversation does
	}
	first := ev.Options[rand.IntN(len(ev.Options))].ID
	c.answers = append(c.answers, first)
	if rand.IntN(4) == 0 {
		c.answers = append(c.answers, ev.Options[rand.IntN(len(ev.Options))].ID)
	}
	answers := c.answers
	p.taps.Go(func() {
		time.Sleep(rand.N(60 * time.Millisecond)) // a person is not quicker
		for _, option := range answers {
			p.w.moment("card")
			if err := p.app.answer(c.id, option); err != nil {
				p.note("answer a card: " + err.Error())
			}
		}
	})
}

func (p *phone) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, text)
}

// load sends until ctx ends, never more than maxOpen messages ahead of the replies.
func (p *phone) load(ctx context.Context) {
	for n := 1; ; n++ {
		t := time.NewTimer(20*time.Millisecond + time.Duration(p.rng.IntN(300))*time.Millisecond)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		if !p.w.wait(ctx, func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.open) < maxOpen
		}) {
			return
		}
		p.send(n)
	}
}

// send sends message n of some kind.
func (p *phone) send(n int) {
	num := fmt.Sprintf("%s.%d", p.id, n)
	switch k := p.rng.IntN(20); {
	case k < 4:
		p.text(num, "ask "+num, "")
	case k < 6:
		p.text(num, "file "+num, "filed "+num)
	case k < 8:
		p.upload(num)
	default:
		words := strings.Repeat("wörter 👩‍👩‍👧 ", p.rng.IntN(6))
		if k == 8 { // longer than a chunk (§4)
			words = strings.Repeat("lange Antworten kommen in Stücken — ", 100+p.rng.IntN(300))
		}
		payload := num + " " + words + fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(num+words)))
		p.text(num, "echo "+payload, "reply "+payload)
	}
}

func (p *phone) text(num, text, want string) {
	m := &message{id: "id-" + num, text: text, want: want}
	p.add(num, m)
	p.w.moment("accept")
	p.sending(m, p.app.send(m))
}

// upload sends a file, in several parts where the server's smallest part allows.
func (p *phone) upload(num string) {
	m := &message{id: "id-" + num, text: "take " + num}
	m.sha = gateway.SHA(m.file())
	m.want = "took " + num + " " + m.sha
	p.add(num, m)
	p.w.moment("file")
	p.sending(m, p.app.sendFile(m))
}

// file is the content of the file that a message is.
func (m *message) file() []byte { return gateway.FileOf("up " + strings.TrimPrefix(m.text, "take ")) }

func (p *phone) add(num string, m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	p.ids[m.id] = m
	p.open[num] = time.Now()
}

func (p *phone) sending(m *message, err error) {
	if err != nil {
		p.note(fmt.Sprintf("send %s: %v", m.id, err))
	}
}

// quiet reports whether everything sent has its receipt and its reply, and every card its end.
func (p *phone) quiet() bool {
	if p.app.pending() > 0 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.cards {
		if len(c.done) == 0 {
			return false
		}
	}
	return len(p.open) == 0
}

// has reports whether a message with this text came, recovered or as it was.
func (p *phone) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.got, func(g seen) bool {
		came, _ := strings.CutPrefix(g.text, gateway.RecoveredPrefix)
		return came == text && !g.interrupted
	})
}
