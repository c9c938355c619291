package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/gateway"
)

// maxOpen is how many messages of a phone may be without their reply at once.
const maxOpen = 4

// message is something a phone sent.
type message struct {
	id, text string
	want     string // the reply, where it follows from the text
	sha      string // of the file that went with it
	out      *device.Outgoing
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

// phone is a device under load. Its store is in memory and outlives every connection.
type phone struct {
	w   *world
	id  string
	dev *device.Device
	net *network   // between it and the server; nil: none
	rng *rand.Rand // of the load loop

	asleep sync.Mutex // held while the app stands still

	mu    sync.Mutex
	sent  []*message
	got   []seen
	cards map[string]*card
	open  map[string]time.Time // numbers of messages without reply, and when they were sent
	slow  time.Duration        // the longest wait for a reply
	slowN string               // of that message
	notes []string             // what should not happen
	state map[device.State]int
	told  bool // the last status said 1001
	away  int  // how often the server said that it goes away (1001)
	taps  sync.WaitGroup
}

func newPhone(w *world, n int) (*phone, error) {
	p := &phone{w: w, id: fmt.Sprintf("phone-%d", n), rng: rand.New(rand.NewPCG(w.seed, uint64(n)+1)), cards: map[string]*card{},
		open: map[string]time.Time{}, state: map[device.State]int{}}
	cfg := device.Config{URL: "ws://" + w.srv.addr() + "/ws", Token: appToken,
		Device: frame.Device{ID: p.id, Name: "Phone"}, NoDelta: n%2 == 1,
		Backoff: device.Backoff{Min: 20 * time.Millisecond, Max: 200 * time.Millisecond, Stable: time.Second}}
	if w.bad {
		var err error
		if p.net, err = newNetwork(w.srv.addr()); err != nil {
			return nil, err
		}
		cfg.URL = "ws://" + p.net.Addr().String() + "/ws"
		cfg.Heartbeat, cfg.PongTimeout, cfg.DialTimeout, cfg.ReceiptTimeout = time.Second, 2*time.Second, 3*time.Second, 5*time.Second
		cfg.Backoff.Max = time.Second
	}
	dev, err := device.Open(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	p.dev = dev
	return p, nil
}

// listen is the event loop.
func (p *phone) listen() {
	for ev := range p.dev.Events(context.Background()) {
		p.awake()
		p.mu.Lock()
		switch ev := ev.(type) {
		case device.Message:
			if ev.Final {
				p.got = append(p.got, seen{id: ev.ID, text: ev.Text, interrupted: ev.Interrupted, replyTo: ev.ReplyTo})
				p.answeredLocked(ev.Text, ev.Interrupted)
			}
		case device.File:
			s := seen{id: ev.ID, text: ev.Caption, replyTo: ev.ReplyTo, file: gateway.SHA(ev.Data)}
			if ev.Err != nil {
				p.notes = append(p.notes, fmt.Sprintf("the file %q came damaged: %v", ev.Caption, ev.Err))
			}
			p.got = append(p.got, s)
		case device.CardShown:
			p.cardLocked(ev)
		case device.CardDone:
			if c := p.cards[ev.ID]; c != nil {
				c.done = append(c.done, ev)
			} else {
				p.notes = append(p.notes, "prompt_done for card "+ev.ID+", which was never shown here")
			}
		case device.HistoryLost:
			p.notes = append(p.notes, "the server said that history was lost")
		case device.Receipt:
			if ev.Err != nil {
				p.notes = append(p.notes, fmt.Sprintf("%s was refused: %v", ev.ID, ev.Err))
			}
		case device.StatusChanged:
			p.state[ev.State]++
			// A slow loop sees the newest status only, but the reason stays in it until the next attempt ends.
			away := websocket.CloseStatus(ev.Err) == websocket.StatusGoingAway
			if away && !p.told {
				p.away++
			}
			p.told = away
			if ev.State == device.Replaced && p.w.bad {
				p.dev.Reconnect() // the person takes this one up again
			} else if ev.State == device.NoAccess || ev.State == device.Replaced {
				p.notes = append(p.notes, fmt.Sprintf("the device stopped trying: %v", ev.Err))
			}
		case device.Problem:
			var e *frame.Error
			if !errors.As(ev.Err, &e) || e.Code != frame.Internal && !(p.w.bad && e.Code == frame.RateLimited) {
				p.notes = append(p.notes, "problem: "+ev.Err.Error())
			}
		}
		p.mu.Unlock()
		p.w.changed()
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
			p.slow, p.slowN = time.Since(at), f[1]
		}
		delete(p.open, f[1])
	}
}

// cardLocked answers a card that was not seen before: after a moment, and now and then twice, with different options.
func (p *phone) cardLocked(ev device.CardShown) {
	if p.cards[ev.ID] != nil {
		return
	}
	c := &card{id: ev.ID, text: ev.Text}
	p.cards[ev.ID] = c
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
			if _, err := p.dev.Answer(context.Background(), ev.ID, option, ""); err != nil {
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
	out, err := p.dev.Send(context.Background(), text, device.WithID(m.id))
	p.sending(m, out, err)
}

// upload sends a file, in several parts where the server's smallest part allows.
func (p *phone) upload(num string) {
	data := gateway.FileOf("up " + num)
	m := &message{id: "id-" + num, text: "take " + num, sha: gateway.SHA(data), want: "took " + num + " " + gateway.SHA(data)}
	p.add(num, m)
	p.w.moment("file")
	out, err := p.dev.SendFile(context.Background(), device.FileOptions{Name: num + ".bin", Mime: "application/octet-stream", Data: data, Caption: m.text},
		device.WithID(m.id))
	p.sending(m, out, err)
}

func (p *phone) add(num string, m *message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	p.open[num] = time.Now()
}

func (p *phone) sending(m *message, out *device.Outgoing, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.notes = append(p.notes, fmt.Sprintf("send %s: %v", m.id, err))
	}
	m.out = out
}

// quiet reports whether everything sent has its receipt and its reply, and every card its end.
func (p *phone) quiet() bool {
	if len(p.dev.Pending()) > 0 {
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
