package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// Phone is a device with everything it was told, in order.
type Phone struct {
	*device.Device
	t  testing.TB
	ID string

	mu     sync.Mutex
	events []device.Event
	news   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc
	store  device.Store
	change []func(*device.Config)
	left   bool
}

// NewPhone connects a device. Its configuration may be changed before.
func NewPhone(t testing.TB, s *Server, id string, change ...func(*device.Config)) *Phone {
	t.Helper()
	p := &Phone{t: t, ID: id, store: device.NewMemoryStore(), change: change}
	p.open(s)
	t.Cleanup(p.Leave)
	return p
}

func (p *Phone) open(s *Server) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cfg := device.Config{URL: s.URL(), Token: s.Token, Device: frame.Device{ID: p.ID, Name: "Phone " + p.ID}, Store: p.store, Tools: true,
		Backoff: device.Backoff{Min: 50 * time.Millisecond, Max: time.Second}}
	for _, c := range p.change {
		c(&cfg)
	}
	d, err := device.Open(ctx, cfg)
	if err != nil {
		cancel()
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.Device, p.cancel, p.news, p.done, p.left = d, cancel, make(chan struct{}), make(chan struct{}), false
	p.mu.Unlock()
	go func() {
		defer close(p.done)
		for ev, err := range d.Events(ctx) {
			if err != nil {
				return // closed
			}
			p.mu.Lock()
			p.events = append(p.events, ev)
			close(p.news)
			p.news = make(chan struct{})
			p.mu.Unlock()
		}
	}()
}

// Leave closes the connection, as a phone that is put away.
func (p *Phone) Leave() {
	if p.left {
		return
	}
	p.left = true
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = p.Close(ctx)
	p.cancel()
	<-p.done
}

// Return connects again with what the device has stored, and perhaps with further changes of its configuration.
func (p *Phone) Return(s *Server, change ...func(*device.Config)) {
	p.t.Helper()
	p.change = append(p.change, change...)
	p.open(s)
}

// Reinstall connects again with nothing stored, as after the app was removed and installed anew.
func (p *Phone) Reinstall(s *Server) {
	p.t.Helper()
	p.store = device.NewMemoryStore()
	p.open(s)
}

// Mark is the place in the events from which on a test looks.
func (p *Phone) Mark() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.events)
}

// Since returns the events from a place on.
func (p *Phone) Since(mark int) []device.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]device.Event(nil), p.events[mark:]...)
}

// Wait returns the first event from a place on that matches.
func Wait[T device.Event](p *Phone, mark int, what string, match func(T) bool) T {
	p.t.Helper()
	return WaitFor(p, mark, patience, what, match)
}

// WaitFor is Wait with another patience.
func WaitFor[T device.Event](p *Phone, mark int, patience time.Duration, what string, match func(T) bool) T {
	p.t.Helper()
	deadline := time.After(patience)
	for at := mark; ; {
		p.mu.Lock()
		events, news := p.events, p.news
		p.mu.Unlock()
		for ; at < len(events); at++ {
			if ev, ok := events[at].(T); ok && match(ev) {
				return ev
			}
		}
		select {
		case <-news:
		case <-deadline:
			p.t.Fatalf("%s: %s did not come; since then came:\n%s", p.ID, what, p.tail(mark))
		}
	}
}

func (p *Phone) tail(mark int) string {
	var b strings.Builder
	events := p.Since(mark)
	for _, ev := range events[max(0, len(events)-25):] {
		text := fmt.Sprintf("%T%+v", ev, ev)
		if len(text) > 300 {
			text = text[:300] + "…"
		}
		fmt.Fprintln(&b, "  "+text)
	}
	return b.String()
}

// Say sends a text and waits for its receipt.
func (p *Phone) Say(text string) (id string) {
	p.t.Helper()
	return p.Receipt(p.Submit(text)).ID
}

// Submit sends a text and does not wait.
func (p *Phone) Submit(text string) *device.Outgoing {
	p.t.Helper()
	out, err := p.Send(p.t.Context(), text)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// Receipt waits for the receipt of what was sent, which must be good.
func (p *Phone) Receipt(out *device.Outgoing) device.Receipt {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	r, err := out.Wait(ctx)
	if err != nil {
		p.t.Fatalf("%s: no good receipt for %v: %v", p.ID, out.Frame, err)
	}
	return r
}

// Upload sends a file and waits for its receipt.
func (p *Phone) Upload(f device.FileOptions) (id string) {
	p.t.Helper()
	out, err := p.SendFile(p.t.Context(), f)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.Receipt(out).ID
}

// Final waits for a finished message that matches.
func (p *Phone) Final(mark int, what string, match func(device.Message) bool) device.Message {
	p.t.Helper()
	return Wait(p, mark, what, func(m device.Message) bool { return m.Final && match(m) })
}

// Answered waits for a finished message of the turn that id began.
func (p *Phone) Answered(mark int, id string) device.Message {
	p.t.Helper()
	return p.Final(mark, "the answer to "+id, func(m device.Message) bool { return m.ReplyTo == id })
}

// Finals lists the finished messages from a place on.
func (p *Phone) Finals(mark int) (list []device.Message) {
	for _, ev := range p.Since(mark) {
		if m, ok := ev.(device.Message); ok && m.Final {
			list = append(list, m)
		}
	}
	return list
}

// Ask sends a text and waits for a finished message that contains want.
func (p *Phone) Ask(text, want string) device.Message {
	p.t.Helper()
	mark := p.Mark()
	p.Say(text)
	return p.Final(mark, fmt.Sprintf("the answer %q to %q", want, text), func(m device.Message) bool { return strings.Contains(m.Text, want) })
}

// Card waits for a question card.
func (p *Phone) Card(mark int, kind string) device.CardShown {
	p.t.Helper()
	return Wait(p, mark, "a card "+kind, func(c device.CardShown) bool { return c.Kind == kind })
}

// Choose answers a card and waits for its end.
func (p *Phone) Choose(c device.CardShown, option, text string) device.CardDone {
	p.t.Helper()
	mark := p.Mark()
	out, err := p.Answer(p.t.Context(), c.ID, option, text)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Receipt(out)
	return Wait(p, mark, "the end of the card", func(d device.CardDone) bool { return d.ID == c.ID })
}

// Idle waits until the agent does not show as working.
func (p *Phone) Idle() {
	p.t.Helper()
	if p.Activity().Typing {
		Wait(p, 0, "the end of the indicator", func(device.Activity) bool { return !p.Activity().Typing })
	}
}

// Online waits until the agent can be reached.
func (p *Phone) Online() { p.t.Helper(); p.Agent(frame.Online) }

// Agent waits until the agent is online or away.
func (p *Phone) Agent(state frame.AgentState) {
	p.t.Helper()
	is := func(s device.Status) bool { return s.Agent == state && s.State == device.Online }
	mark := p.Mark()
	if is(p.Status()) {
		return
	}
	Wait(p, mark, "the agent "+string(state), func(device.StatusChanged) bool { return is(p.Status()) })
}
