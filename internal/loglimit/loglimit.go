// Package loglimit bounds how many lines a log takes.
//
// Anybody who reaches the port can cause lines: with a wrong token, a request that is no HTTP, a
// hello for every connection. Without a bound they would fill the disk, and hide what matters. The
// bound is one for all lines, so no line can be forgotten.
package loglimit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// Burst is how many lines with one message are logged at once, when none was for a while.
	Burst = 100
	// PerMinute is how many lines with one message are logged in a minute from then on.
	PerMinute = 30
	// PerAddress is how many warnings with one message are logged for one address in a minute, so
	// that one noisy address hides no other.
	PerAddress = 3
	// maxMessages bounds what is remembered. Messages are constants, so it is never reached, unless
	// a message holds what somebody has sent.
	maxMessages = 1000
)

// Keys of attributes.
const (
	keyAddress = "addr"     // of whoever has caused a line
	keyLeftOut = "left_out" // how many lines with this message were left out since the last one
)

// New bounds the lines that get through to h. A line that is logged after others were left out has
// their number in the attribute left_out.
func New(h slog.Handler) slog.Handler {
	return &handler{Handler: h, limit: &limit{messages: map[string]*message{}}}
}

type handler struct {
	slog.Handler
	limit *limit // shared by all loggers made from the first
}

// Handle implements slog.Handler.
func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	ok, before := h.limit.take(&r)
	if !ok {
		return nil
	}
	if before > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int(keyLeftOut, before))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.limit}
}

// WithGroup implements slog.Handler.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.limit}
}

type limit struct {
	mu       sync.Mutex
	messages map[string]*message
}

// message is what is known of the lines with one message.
type message struct {
	at    time.Time // of the last line, logged or not
	room  float64   // lines that may be logged now
	left  int       // lines that were left out since the last one
	began time.Time // of the minute that addresses are counted in
	addrs map[string]int
}

// take reports whether a line may be logged, and how many were left out before it.
func (l *limit) take(r *slog.Record) (ok bool, before int) {
	addr := ""
	if r.Level >= slog.LevelWarn {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == keyAddress {
				addr = a.Value.String()
			}
			return addr == ""
		})
	}
	now := r.Time
	if now.IsZero() {
		now = time.Now()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.message(r.Message, now)
	m.room = min(m.room+max(0, now.Sub(m.at).Minutes())*PerMinute, Burst)
	m.at = now
	if since := now.Sub(m.began); since < 0 || since >= time.Minute {
		m.began, m.addrs = now, nil
	}
	if m.room < 1 || m.addrs[addr] >= PerAddress {
		m.left++
		return false, 0
	}
	m.room--
	before, m.left = m.left, 0
	if addr != "" {
		if m.addrs == nil {
			m.addrs = map[string]int{}
		}
		m.addrs[addr]++
	}
	return true, before
}

// message returns what is known of a message. When there are too many, those that are the newest
// share one. Locked.
func (l *limit) message(text string, now time.Time) *message {
	m := l.messages[text]
	if m == nil && len(l.messages) >= maxMessages {
		text = ""
		m = l.messages[text]
	}
	if m == nil {
		m = &message{at: now, room: Burst, began: now}
		l.messages[text] = m
	}
	return m
}
