package relay

import (
	"log/slog"
	"time"
)

// Gateway configures one Hermes gateway that may dial in.
type Gateway struct {
	ID     string // GATEWAY_RELAY_ID; may contain colons
	Secret string // GATEWAY_RELAY_SECRET
	Name   string // for people; ID where empty
	// Devices lists whom it serves: device ids, "user:<id>", or "*" for every device that no other
	// list names. Empty means "*".
	Devices []string
	// Local says whether the gateway is on this machine and can read our files. Where it is nil, an
	// older gateway is local when it dials over loopback without a proxy between. A newer gateway,
	// which can also fetch files, is local when it is known to see them.
	Local *bool
	// PublicURL is the address at which the gateway reaches us, for the addresses of files. Where it
	// is empty, it is the host that the gateway dialed.
	PublicURL string
	// WakeURL is requested while messages wait and the gateway is offline, unless it is empty.
	WakeURL string
}

// wire is the connection of one gateway: its current link, and since when it is up or down. The lock
// of the gateway must be held.
type wire struct {
	now   func() time.Time
	log   *slog.Logger
	count func(what string)
	down  func() // called when the connection is over, or must not be heard any more

	link         *link // nil while the gateway is offline
	ready        bool  // it said hello, and we answered
	idle         bool  // it said going_idle, and no hello came since
	retired      bool  // it is not configured any more, or the agent has ended
	connectedAt  time.Time
	helloAt      time.Time
	offlineSince time.Time
	wasLocal     bool        // the last connection came from this machine
	replacedAt   []time.Time // when connections that were still open were replaced
	badLines     int64
}

// online reports whether an event could be sent now.
func (w *wire) online() bool { return w.link != nil && w.ready && !w.idle && !w.retired }

// send queues a frame and reports whether it was accepted.
func (w *wire) send(frame []byte) bool { return w.link != nil && w.link.send(frame) }

// connect makes l the connection. A newer one replaces an older one: usually the older one is dead
// and we have not noticed.
func (w *wire) connect(l *link) {
	now := w.now()
	if w.link != nil {
		w.count(CountReplaced)
		w.log.Info("gateway connection replaced by a newer one", "addr", l.from, "older", w.link.from)
		w.replacedAt = append(w.replacedAt, now)
		if len(w.replacedAt) > 8 {
			w.replacedAt = w.replacedAt[1:]
		}
		w.close(closeRestart, "replaced by a newer connection")
	}
	w.link, w.ready, w.connectedAt, w.wasLocal = l, false, now, l.local
	w.log.Info("gateway connected", "addr", l.from)
}

// hello notes that the gateway said hello, and reports whether that is news: a gateway with several
// names says it several times.
func (w *wire) hello() bool {
	if w.ready && !w.idle {
		return false
	}
	w.ready, w.idle, w.helloAt = true, false, w.now()
	return true
}

// close closes the connection, and lost follows at once.
func (w *wire) close(code int, reason string) {
	if l := w.link; l != nil {
		l.close(code, reason)
		w.lost(l)
	}
}

// lost notes that a connection is over, or must not be heard any more.
func (w *wire) lost(l *link) {
	if w.link != l {
		return
	}
	w.link, w.ready = nil, false
	w.offlineSince = w.now()
	w.down()
}

// overload closes the connection of a gateway that sends more than fits into our memory budget.
func (w *wire) overload(of string) {
	if w.link == nil {
		return
	}
	w.log.Warn("gateway exceeds the memory budget, closing the connection", "reason", of)
	w.count(CountOverload)
	w.close(closeTryLater, "too fast")
}

// badLine notes a line that could not be decoded. It logs the first and every thousandth.
func (w *wire) badLine(size int) {
	w.count(CountBadLine)
	if w.badLines++; w.badLines == 1 || w.badLines%1000 == 0 {
		w.log.Warn("frame malformed", "bytes", size, "total", w.badLines)
	}
}

// sharesID reports whether open connections replaced one another so often that two gateways must use
// the same id.
func (w *wire) sharesID() bool {
	const often = 3
	n := 0
	for _, t := range w.replacedAt {
		if w.now().Sub(t) < 2*time.Minute {
			n++
		}
	}
	return n >= often
}
