package access

import (
	"cmp"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds of what is remembered about rejected clients.
const (
	rejectedWithin = time.Hour
	rejectedOften  = 3 // from here on the doctor reports it
	maxRejected    = 256
	maxWhy         = 300
)

// Rejected is a client that was rejected again and again.
type Rejected struct {
	Device string // empty: the client was rejected before it said which device it is
	Addr   netip.Addr
	Code   string
	Why    string    // it was rejected the last time
	Count  int       // since First
	First  time.Time // with no pause of an hour since
	Last   time.Time
}

// Rejections remembers which clients were rejected and why, so that the owner can be told. It keeps the newest few hundred
// only, because strangers can make up ids. Safe for concurrent use.
type Rejections struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[rejectedKey]*rejected
}

type rejectedKey struct {
	device, code string
	addr         netip.Addr
}

type rejected struct {
	Rejected
	recent [rejectedOften]time.Time // a ring
}

// NewRejections returns an empty memory. The clock is time.Now, or a test's.
func NewRejections(now func() time.Time) *Rejections {
	return &Rejections{now: now, known: map[rejectedKey]*rejected{}}
}

// Note remembers a rejection.
func (r *Rejections) Note(device string, addr netip.Addr, code, why string) {
	if len(why) > maxWhy {
		why = why[:maxWhy]
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, key := r.now(), rejectedKey{device, code, addr}
	e := r.known[key]
	if e == nil {
		if len(r.known) >= maxRejected {
			r.drop()
		}
		e = &rejected{}
		r.known[key] = e
	}
	if now.Sub(e.Last) > rejectedWithin {
		*e = rejected{Rejected: Rejected{Device: device, Addr: addr, Code: code, First: now}}
	}
	e.Why, e.Last = why, now
	e.recent[e.Count%rejectedOften] = now
	e.Count++
}

// drop forgets the client that was quiet for longest.
func (r *Rejections) drop() {
	var oldest rejectedKey
	first := true
	for key, e := range r.known {
		if first || e.Last.Before(r.known[oldest].Last) {
			oldest, first = key, false
		}
	}
	delete(r.known, oldest)
}

// Forget forgets the rejections of a device that has connected.
func (r *Rejections) Forget(device string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.known {
		if key.device == device {
			delete(r.known, key)
		}
	}
}

// Often returns the clients that were rejected three times or more within the last hour, the newest first.
func (r *Rejections) Often() (list []Rejected) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since := r.now().Add(-rejectedWithin)
	for _, e := range r.known {
		if oldest := e.recent[e.Count%rejectedOften]; e.Count >= rejectedOften && oldest.After(since) {
			list = append(list, e.Rejected)
		}
	}
	slices.SortFunc(list, func(a, b Rejected) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Device, b.Device), a.Addr.Compare(b.Addr), cmp.Compare(a.Code, b.Code))
	})
	return list
}
