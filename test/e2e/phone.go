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
}

// NewPhone connects a device.
func NewPhone(t testing.TB, s *Server, id string) *Phone {
	t.Helper()
	p := &Phone{t: t, ID: id, store: device.NewMemoryStore()}
	p.open(s)
	t.Cleanup(p.Leave)
	return p
}

func (p *Phone) open(s *Server) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	d, err := device.Open(ctx, device.Config{URL: s.URL(), Token: s.Token, Device: frame.Device{ID: p.ID, Name: "Phone " + p.ID}, Store: p.store, Tools: true,
		Backoff: device.Backoff{Min: 50 * time.Millisecond, Max: time.Second}})
	if err != nil {
		cancel()
		p.t.Fatal(err)
	}
	p.mu.Lock()
	p.Device, p.cancel, p.news, p.done = d, cancel, make(chan struct{}), make(chan struct{})
	p.mu.Unlock()
	go func() {
		defer close(p.done)
		for ev := range d.Events(ctx) {
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
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = p.Close(ctx)
	p.cancel()
	<-p.done
}

// Return connects again with what the device has stored.
func (p *Phone) Return(s *Server) { p.t.Helper(); p.open(s) }

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
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, err := p.Send(ctx, text)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := out.Wait(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	if r.Err != nil {
		p.t.Fatalf("%q was refused: %v", text, r.Err)
	}
	return out.ID
}

// Final waits for a finished message that matches.
func (p *Phone) Final(mark int, what string, match func(device.Message) bool) device.Message {
	p.t.Helper()
	return Wait(p, mark, what, func(m device.Message) bool { return m.Final && match(m) })
}

// Ask sends a text and waits for a finished message that contains want.
func (p *Phone) Ask(text, want string) device.Message {
	p.t.Helper()
	mark := p.Mark()
	p.Say(text)
	return p.Final(mark, fmt.Sprintf("the answer %q to %q", want, text), func(m device.Message) bool { return strings.Contains(m.Text, want) })
}

// Online waits until the agent can be reached.
func (p *Phone) Online() {
	p.t.Helper()
	if p.Status().Agent == frame.Online && p.Status().State == device.Online {
		return
	}
	Wait(p, 0, "the agent", func(s device.StatusChanged) bool { return s.Agent == frame.Online && s.State == device.Online })
}
