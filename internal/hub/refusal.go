package hub

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
)

// What is remembered of those who are turned away.
const (
	refusedWithin = time.Hour
	refusedOften  = 3 // from here on it is worth a finding
	maxRefused    = 256
	maxWhy        = 300
)

// Refused is somebody who was turned away again and again.
type Refused struct {
	Device string // empty: it was turned away before it said who it is
	Addr   netip.Addr
	Code   string
	Why    string    // of the last time
	Count  int       // since First
	First  time.Time // with no pause of an hour since
	Last   time.Time
}

// Refusals remembers who was turned away and why, so that its owner can be told. Only the newest few hundred are kept, since
// strangers can make up ids. Safe for concurrent use.
type Refusals struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[refusedKey]*turnedAway
}

type refusedKey struct {
	device, code string
	addr         netip.Addr
}

type turnedAway struct {
	Refused
	recent [refusedOften]time.Time // a ring
}

// NewRefusals makes an empty memory. The clock is time.Now, or a test's.
func NewRefusals(now func() time.Time) *Refusals {
	return &Refusals{now: now, known: map[refusedKey]*turnedAway{}}
}

// Note remembers that somebody was turned away.
func (r *Refusals) Note(device string, addr netip.Addr, code, why string) {
	if len(why) > maxWhy {
		why = why[:maxWhy]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, key := r.now(), refusedKey{device, code, addr}
	e := r.known[key]
	if e == nil {
		if len(r.known) >= maxRefused {
			r.drop()
		}
		e = &turnedAway{}
		r.known[key] = e
	}
	if now.Sub(e.Last) > refusedWithin {
		*e = turnedAway{Refused: Refused{Device: device, Addr: addr, Code: code, First: now}}
	}
	e.Why, e.Last = why, now
	e.recent[e.Count%refusedOften] = now
	e.Count++
}

// drop takes the one out that was quiet for longest.
func (r *Refusals) drop() {
	var oldest refusedKey
	first := true
	for key, e := range r.known {
		if first || e.Last.Before(r.known[oldest].Last) {
			oldest, first = key, false
		}
	}
	delete(r.known, oldest)
}

// Forget drops what is remembered of a device: it was let in.
func (r *Refusals) Forget(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.known {
		if key.device == device {
			delete(r.known, key)
		}
	}
}

// Often lists who was turned away three times or more within the last hour, the newest first.
func (r *Refusals) Often() (list []Refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := r.now().Add(-refusedWithin)
	for _, e := range r.known {
		if oldest := e.recent[e.Count%refusedOften]; e.Count >= refusedOften && oldest.After(since) {
			list = append(list, e.Refused)
		}
	}
	slices.SortFunc(list, func(a, b Refused) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Device, b.Device), a.Addr.Compare(b.Addr), cmp.Compare(a.Code, b.Code))
	})
	return list
}

// Refused lists the devices that were turned away again and again, and were not let in since.
func (h *Hub) Refused() []Refused { return h.refusals.Often() }

// logRefused logs that a device was turned away at its hello.
func (h *Hub) logRefused(device string, addr netip.Addr, code frame.Code, why string) {
	h.log.Warn("a device was refused", "device", device, "addr", addr, "code", code, "why", why)
}

// noteRefused remembers a device that is turned away. What is the server's own fault is none of the device.
func (h *Hub) noteRefused(device string, addr netip.Addr, e *frame.Error) {
	if e.Code != frame.Internal {
		h.refusals.Note(device, addr, string(e.Code), e.Message)
	}
}
