// Package notify tells devices that are offline what waits for them. It decides when a device is notified and when a
// notification is withdrawn, writes the words of a notification, and sends it with package push.
//
// A device is notified a short while after its entries were stored. So several entries make one notification, and a device
// that comes back at once gets none. The entries are marked as notified before the notification is sent. A crash may
// therefore cost a notification and never doubles one. The entries themselves are in the outbox anyway.
//
// A notification is withdrawn when nothing it tells of needs attention any more: the device has acknowledged it, another
// device of the conversation has shown it, or the card is decided.
//
// The package does not know the hub. Each session owns a [Device] and implements [Host] for it.
package notify

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/store"
)

// DefaultWait is how long a device has to connect before it is notified.
const DefaultWait = 3 * time.Second

// maxSending bounds the notifications that are being sent or wait for another attempt.
const maxSending = 256

// stopTimeout is how long notifications that are being sent may still take when the server stops.
const stopTimeout = 2 * time.Second

// Options configures a Service.
type Options struct {
	Sender *push.Sender  // nil: devices are not notified
	Key    []byte        // signs action tokens; nil: notifications have no actions
	Wait   time.Duration // that a device has to connect before it is notified
	Life   time.Duration // how long an outbox entry waits for its device

	Store   *store.Store
	Read    func(body []byte) (Note, error) // decodes an outbox entry
	Metrics *metrics.Set
	Log     *slog.Logger

	// Unregister is called when an endpoint of a device is no longer valid, or another device has registered it. It must
	// not block.
	Unregister func(device, endpoint string)
}

// Service sends the notifications of all devices, each in a goroutine of its own. Its methods may be called concurrently.
type Service struct {
	Options
	tests *access.Limiter // of push.test, by device

	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup // grows under mu, and not after closed is set

	mu     sync.Mutex
	count  int
	number int
	latest map[string]int // number of the newest notification by endpoint and topic
	closed bool
}

// New returns a Service. The caller must close it.
func New(o Options) *Service {
	s := &Service{Options: o, tests: access.NewLimiter(time.Now), latest: map[string]int{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Enabled reports whether devices can be notified.
func (s *Service) Enabled() bool { return s.Sender != nil }

// Close stops accepting notifications, gives those being sent a moment, and waits for all of them.
func (s *Service) Close(ctx context.Context) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	grace, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); s.work.Wait() }()
	select {
	case <-done:
	case <-grace.Done():
	}
	s.cancel()
	<-done
}

// begin admits a notification. It fails if too many are being sent or the server stops.
func (s *Service) begin(key string) (number int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.count >= maxSending {
		return 0, false
	}
	s.count++
	s.number++
	s.latest[key] = s.number
	s.work.Add(1)
	return s.number, true
}

func (s *Service) end(key string, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest[key] == number {
		delete(s.latest, key)
	}
	s.count--
	s.work.Done()
}

// newest reports whether no newer notification replaces this one.
func (s *Service) newest(key string, number int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latest[key] == number
}

// send sends a notification to a device without waiting for it.
func (s *Service) send(device string, t push.Target, n push.Note) {
	key := t.Endpoint + "\n" + n.Topic
	number, ok := s.begin(key)
	if !ok {
		s.Metrics.Pushes.WithLabelValues(string(push.Dropped)).Inc()
		s.Log.Warn("notification dropped", "device", device, "reason", "too many are being sent")
		return
	}
	go func() {
		defer s.end(key, number)
		wanted := func() bool { return n.Topic == "" || s.newest(key, number) }
		s.sent(device, t, s.Sender.Send(s.ctx, t, n, wanted))
	}()
}

// sent counts the outcome of a notification, and unregisters an endpoint that is no longer valid.
func (s *Service) sent(device string, t push.Target, r push.Result) {
	s.Metrics.Pushes.WithLabelValues(string(r.Outcome)).Inc()
	switch r.Outcome {
	case push.Sent, push.Stale:
		s.Log.Debug("notification sent", "device", device, "kind", t.Kind, "outcome", r.Outcome)
	case push.Gone:
		s.Log.Info("push endpoint expired", "device", device, "kind", t.Kind, "service", t.Host())
		s.Unregister(device, t.Endpoint)
	default:
		s.Log.Warn("notification failed", "device", device, "kind", t.Kind, "service", t.Host(), "outcome", r.Outcome,
			"status", r.Status, "reason", cmp.Or(r.Detail, r.Reason))
	}
}
