// Package loglimit samples a log: it bounds how many lines a message may have.
//
// Anybody who reaches the port can cause lines, with a wrong token, a request that isn't HTTP, or a
// hello on every connection. Without a bound such lines would fill the disk and hide what matters.
// The handler covers every line of the program, so no call site can be forgotten.
package loglimit

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"hermes-mobile/internal/ratelimit"
)

const (
	// Burst is how many lines a message may have at once after a quiet time.
	Burst = 100
	// PerMinute is how many lines per minute a message may have from then on.
	PerMinute = 30
	// PerAddress is how many warnings with one message an address may cause in any minute, so one
	// noisy address hides no other. Addresses count by [ratelimit.Network].
	PerAddress = 3
	// maxMessages bounds the messages that are remembered. Messages are constants, so the bound is
	// never reached unless a message contains text from outside.
	maxMessages = 1000
	// maxAddresses bounds the pairs of message and address that are remembered.
	maxAddresses = 10_000
)

// Attribute keys.
const (
	keyAddress = "addr"     // the address that caused a line
	keyLeftOut = "left_out" // how many lines with this message were dropped since the last one
)

// New returns a handler that passes a sample of the lines on to h. A line that follows dropped
// lines has their number in the attribute left_out.
func New(h slog.Handler) slog.Handler {
	return &handler{Handler: h, sampler: newSampler()}
}

type handler struct {
	slog.Handler
	sampler *sampler // shared by all loggers derived from the first
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	ok, dropped := h.sampler.take(&r)
	if !ok {
		return nil
	}
	if dropped > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(keyLeftOut, dropped))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.sampler}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.sampler}
}

type sampler struct {
	addrs *ratelimit.Windows[source]

	mu       sync.Mutex
	messages map[string]*message
}

// message counts the lines with one message.
type message struct {
	lines   *ratelimit.Bucket
	dropped int // lines since the last one that was logged
}

// source is an address that causes lines with one message.
type source struct{ message, network string }

func newSampler() *sampler {
	return &sampler{addrs: ratelimit.NewWindows[source](PerAddress, time.Minute, maxAddresses, time.Now), messages: map[string]*message{}}
}

// take reports whether to log a line, and how many lines were dropped before it.
func (s *sampler) take(r *slog.Record) (ok bool, dropped int) {
	now := r.Time
	if now.IsZero() {
		now = time.Now()
	}
	network := networkOf(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.message(r.Message)
	ok = m.lines.Wait(now) == 0
	if ok && network != "" {
		_, ok = s.addrs.AllowAt(now, source{r.Message, network})
	}
	if !ok {
		m.dropped++
		return false, 0
	}
	m.lines.Take(now)
	dropped, m.dropped = m.dropped, 0
	return true, dropped
}

// networkOf returns the network that a warning is about, or an empty string.
func networkOf(r *slog.Record) (network string) {
	if r.Level < slog.LevelWarn {
		return ""
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == keyAddress {
			network = a.Value.String()
			if addr, err := netip.ParseAddr(network); err == nil {
				network = ratelimit.Network(addr).String()
			}
		}
		return network == ""
	})
	return network
}

// message returns the count of a message. When there are too many, the newest share one. Callers
// hold the lock.
func (s *sampler) message(text string) *message {
	m := s.messages[text]
	if m == nil && len(s.messages) >= maxMessages {
		text = ""
		m = s.messages[text]
	}
	if m == nil {
		m = &message{lines: ratelimit.NewBucket(ratelimit.PerMinute(Burst, PerMinute))}
		s.messages[text] = m
	}
	return m
}
