package hub

import (
	"cmp"
	"context"
	"sync"
	"time"

	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
)

// maxPushes bounds the notifications that are being sent or wait for another try.
const maxPushes = 256

// pushGrace is how long the notifications that are being sent when the server stops may still take.
const pushGrace = 2 * time.Second

// pushes are the notifications that are being sent, each in a goroutine of its own.
type pushes struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   tally

	mu     sync.Mutex
	count  int
	number int
	latest map[string]int // number of the newest by endpoint and topic
	closed bool
}

func (p *pushes) init() {
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.latest = map[string]int{}
}

// begin takes a notification in. false: there are too many, or the server stops.
func (p *pushes) begin(key string) (number int, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.count >= maxPushes {
		return 0, false
	}
	p.count++
	p.number++
	p.latest[key] = p.number
	p.work.Add(1)
	return p.number, true
}

func (p *pushes) end(key string, number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.latest[key] == number {
		delete(p.latest, key)
	}
	p.count--
	p.work.Done()
}

// newest reports whether no newer notification replaces this one.
func (p *pushes) newest(key string, number int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest[key] == number
}

// close lets what is being sent end, for a moment, and waits for it.
func (p *pushes) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	grace, cancel := context.WithTimeout(ctx, pushGrace)
	defer cancel()
	wait(grace, p.work.Wait)
	p.cancel()
	p.work.Wait()
}

// send sends a notification to a device without waiting for it.
func (h *Hub) send(s *session, t push.Target, n push.Note) {
	id, key := s.id, t.Endpoint+"\n"+n.Topic
	number, ok := h.pushes.begin(key)
	if !ok {
		h.Metrics.Pushes.WithLabelValues(string(push.Dropped)).Inc()
		h.log.Warn("a notification was dropped, since too many wait", "device", id)
		return
	}
	go func() {
		defer h.pushes.end(key, number)
		r := h.Push.Send(h.pushes.ctx, t, n, func() bool { return n.Topic == "" || h.pushes.newest(key, number) })
		h.pushed(id, t, r)
	}()
}

// pushed counts what became of a notification, and forgets a registration that is no longer valid.
func (h *Hub) pushed(device string, t push.Target, r push.Result) {
	h.Metrics.Pushes.WithLabelValues(string(r.Outcome)).Inc()
	switch r.Outcome {
	case push.Sent, push.Stale:
		h.log.Debug("a notification was sent", "device", device, "kind", t.Kind, "outcome", r.Outcome)
	case push.Gone:
		h.log.Info("a registration for notifications is no longer valid and was removed", "device", device, "kind", t.Kind, "service", t.Host())
		h.post(device, pushGone{t.Endpoint})
	default:
		h.log.Warn("a notification could not be sent", "device", device, "kind", t.Kind, "service", t.Host(), "outcome", r.Outcome, "status", r.Status, "reason", cmp.Or(r.Detail, r.Reason))
	}
}

// pushGone: an endpoint of the device is no longer valid, or another device has it.
type pushGone struct{ endpoint string }

func (e pushGone) apply(s *session, b *batch) {
	s.flush(b)
	if s.dev != nil {
		s.unregister(b, e.endpoint, nil)
	}
}

// unregister forgets an endpoint; an empty one stands for all.
func (s *session) unregister(b *batch, endpoint string, done func(error)) {
	device := s.dev.N
	var left []push.Target
	for _, t := range s.push.targets {
		if endpoint != "" && t.Endpoint != endpoint {
			left = append(left, t)
		}
	}
	if len(left) == len(s.push.targets) {
		if done != nil {
			b.then(func() { done(nil) })
		}
		return
	}
	b.do(func(tx *store.Tx) error {
		if len(left) == 0 {
			return tx.ForgetPush(device)
		}
		return tx.RemovePush(device, endpoint)
	}, func(err error) {
		if err == nil {
			if s.push.targets = left; len(left) == 0 {
				s.push = pushState{given: s.push.given}
			}
		}
		if done != nil {
			done(err)
		}
	})
}
