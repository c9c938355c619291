package relay

import (
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	wedgeAfter   = time.Second      // an ack that takes longer (relay-facts §5: 2 to 5 ms)
	deafAfter    = 2 * time.Minute  // without an ack the connection is given up: the longest wedge takes 30 s (relay-facts §7)
	keepUnacked  = 2 * time.Minute  // how long an event that was written is kept while the gateway is away
	answerWithin = 20 * time.Second // a gateway waits 30 s (relay-facts §4)
	maxTries     = 8                // an event over which so many connections were lost is refused
	softPending  = 256              // stores not yet done, above which interim ops wait
	hardPending  = 2048             // above which the connection is closed with 1013
	hardBytes    = 64 << 20         // likewise, in bytes of text
	maxConvos    = 100_000
	maxTold      = 256 // what is kept for use again
)

// gateway is the state of one configured gateway, see the package's
// documentation for who may touch it.
type gateway struct {
	a   *Agent
	log *slog.Logger
	cfg atomic.Pointer[Gateway]

	mu      sync.Mutex
	later_  []func() // to be told after unlocking, in order
	told    []func() // empty, of the last time, to be used again
	telling bool
	retired bool

	// The connection.
	link        *link // nil: away
	ready       bool  // a hello was answered
	idle        bool  // it said going_idle, and no hello came since
	names       []string
	connectedAt time.Time
	wasLocal    bool // the last connection came from this machine
	helloAt     time.Time
	awaySince   time.Time
	replacedAt  []time.Time // of connections still alive, by newer ones
	steers      bool        // it adds texts to running turns, as far as is known
	newerHere   bool        // this connection has brought an op that only newer gateways send
	version     Version
	detail      string        // of the last status
	waking      chan struct{} // closed when it has come; nil: nobody wakes it
	wakeNext    time.Time     // before which it is not woken again
	wakeErr     string        // why it could not be woken the last time
	known       string        // name that frames proved to be one the gateway knows (relay-facts §9)

	// What goes to it: the wedge rule (relay-facts §7) allows one event at a time.
	queue    []*item
	inflight *item // == queue[0]
	wedged   bool
	wedges   int64
	lastWedge,
	wedgedAt time.Time
	pongs      int64     // that came
	pinged     time.Time // when we last did, beside the keeper
	unanswered time.Time // since when no pong has come; zero: none is due

	// What came from it and is being stored.
	waiting      map[string]time.Time // since when an outbound op is worked on, by requestId, of this connection
	held         []string             // requestIds of interim ops, answered when the hub is quick again
	pending      int                  // stores not yet done
	pendingBytes int
	openBytes    int // of messages that are not final
	badLines     int64
	noted        map[string]*noted // by the text of the line

	// Prompts.
	nonce string // of the process now, where a prompt showed it
	dead  string // of the process before, where known

	convos  map[string]*convo
	active  map[*convo]struct{} // those the clock must look at
	stops   bool                // an interrupt may be due
	swept   time.Time
	watched bool // the clock will look soon by itself
}

func newGateway(a *Agent, cfg Gateway) *gateway {
	g := &gateway{
		a: a, log: a.log.With("gateway", cfg.ID), version: a.opt.Known[cfg.ID],
		waiting: map[string]time.Time{}, convos: map[string]*convo{}, noted: map[string]*noted{}, active: map[*convo]struct{}{},
		awaySince: a.now(),
	}
	g.cfg.Store(&cfg)
	return g
}

func (g *gateway) config() *Gateway { return g.cfg.Load() }

// do changes the state, and then tells others what is to be told. If somebody
// else is telling, it is left to them: the order is kept and nobody waits.
func (g *gateway) do(f func()) {
	g.mu.Lock()
	f()
	if !g.watched && g.busy() {
		g.watched = true
		g.a.kick()
	}
	if g.telling {
		g.mu.Unlock()
		return
	}
	g.telling = true
	for len(g.later_) > 0 {
		batch := g.later_
		g.later_, g.told = g.told, nil
		g.mu.Unlock()
		for _, tell := range batch {
			tell()
		}
		clear(batch)
		g.mu.Lock()
		if cap(batch) <= maxTold {
			g.told = batch[:0]
		}
	}
	g.telling = false
	g.mu.Unlock()
}

// later notes what is to be told after unlocking.
func (g *gateway) later(tell func()) { g.later_ = append(g.later_, tell) }

func (g *gateway) changed() {
	g.later(func() {
		if h := g.a.getHost(); h != nil {
			h.Changed()
		}
	})
}

// post gives events to a device.
func (g *gateway) post(device string, events ...agent.Event) {
	g.later(func() { g.a.getHost().Post(device, nil, events...) })
}

// store gives events to a device and calls then with the outcome, locked.
func (g *gateway) store(device string, size int, then func(err error), events ...agent.Event) {
	g.pending++
	g.pendingBytes += size
	g.later(func() {
		g.a.getHost().Post(device, func(err error) {
			g.do(func() {
				g.pending--
				g.pendingBytes -= size
				if errors.Is(err, agent.ErrNoDevice) {
					g.forget(device)
				}
				then(err)
				g.release()
			})
		}, events...)
	})
	if g.pending > hardPending || g.pendingBytes > hardBytes {
		g.overload("stores")
	}
}

// overload closes the connection of a gateway that sends more than can be held.
func (g *gateway) overload(of string) {
	if g.link == nil {
		return
	}
	g.log.Warn("relay: the gateway sends more than can be held, closing", "of", of, "pending", g.pending)
	g.a.count(CountOverload, g.config().ID)
	g.dropLink(closeTryLater, "too fast")
}

// release answers the interim ops that were held while the hub was slow.
func (g *gateway) release() {
	if g.pending > softPending || len(g.held) == 0 {
		return
	}
	for _, id := range g.held {
		g.answer(id, result{Success: true})
	}
	g.held = nil
}

// slow reports whether the hub is behind: then steps of messages are left out.
func (g *gateway) slow() bool { return g.pending > softPending }

// online reports whether an event could be sent now.
func (g *gateway) online() bool { return g.link != nil && g.ready && !g.idle && !g.retired }

// An item is one event for the gateway.
type item struct {
	id      string // its bufferId, too
	frame   []byte
	device  string
	written time.Time // zero: not on this connection
	sent    bool      // was written on some connection: the gateway may have it
	tries   int
	wrote   func()      // locked, when it is written; may be nil
	acked   func()      // locked
	refused func(error) // locked: it will not be sent any more
	lost    func()      // locked: it was written, whether it arrived is not known, and it may not be sent again
	command bool        // a word that the gateway carries out itself
	joins   *turn       // that it is to be added to
	given   agent.Given // what is stored before it is written, where the gateway does not know repeats
	noting  bool        // that is being stored
	noted   bool        // it was
}

func (g *gateway) enqueue(it *item) {
	g.queue = append(g.queue, it)
	g.pump()
}

// pump sends the next event if none is on its way.
func (g *gateway) pump() {
	if g.inflight != nil || !g.online() || len(g.queue) == 0 {
		return
	}
	it := g.queue[0]
	if it.tries >= maxTries {
		g.log.Error("relay: the gateway could not take an event", "event", it.id, "tries", it.tries)
		g.queue = g.queue[1:]
		g.takeBack(it)
		it.refused(errors.New("the agent's gateway could not take this message"))
		g.pump()
		return
	}
	if g.noteFirst(it) {
		return
	}
	if !g.link.send(it.frame) {
		return // the connection is being closed
	}
	it.written, it.sent = g.a.now(), true
	it.tries++
	g.inflight = it
	if it.wrote != nil {
		it.wrote()
	}
}

// ack takes an inbound_ack (relay-facts §5). Others than of the event that is on
// its way are repeats.
func (g *gateway) ack(bufferID string) {
	it := g.inflight
	if it == nil || it.id != bufferID {
		return
	}
	g.inflight = nil
	g.queue = g.queue[1:]
	if g.wedged {
		g.wedged = false
		g.log.Info("relay: the gateway takes events again", "after", g.a.now().Sub(it.written).Round(time.Millisecond))
		g.changed()
	}
	it.acked()
	g.stopsDue()
	g.pump()
}

// unqueue gives back what was not sent, all of it or what was never written. What may have arrived at a gateway that does not
// know repeats is never sent again.
func (g *gateway) unqueue(all bool) {
	keep := g.queue[:0:0]
	for _, it := range g.queue {
		switch {
		case it.sent && !g.version.dropsRepeats():
			it.lost()
		case it.sent && !all:
			keep = append(keep, it)
		default:
			g.takeBack(it)
			it.refused(agent.ErrAway)
		}
	}
	g.queue = keep
	g.inflight = nil
	for c := range g.active {
		if it := c.parked; it != nil {
			c.parked = nil
			it.refused(agent.ErrAway)
		}
	}
}

// stopsDue sends the interrupts that could not be sent before.
func (g *gateway) stopsDue() {
	if !g.stops {
		return
	}
	g.stops = false
	for c := range g.active {
		if c.turn != nil && c.turn.stopDue {
			g.interrupt(c)
			g.stops = g.stops || c.turn.stopDue
		}
	}
}

// dropLink closes the connection; linkGone follows at once.
func (g *gateway) dropLink(code int, reason string) {
	if l := g.link; l != nil {
		l.close(code, reason)
		g.linkGone(l)
	}
}

// linkGone is called when a connection is over, or is not to be heard any more.
func (g *gateway) linkGone(l *link) {
	if g.link != l {
		return
	}
	g.link, g.ready, g.wedged, g.unanswered = nil, false, false, time.Time{}
	g.awaySince = g.a.now()
	clear(g.waiting)
	g.held = nil
	for _, c := range g.convos {
		c.receipts = 0 // a confirmation that was lost comes no more
	}
	for _, it := range g.queue {
		it.written = time.Time{}
	}
	g.unqueue(false)
	g.changed()
}

// retire ends everything: the gateway is not configured any more, or the agent ends.
func (g *gateway) retire(code int, reason string) {
	g.do(func() {
		g.retired = true
		g.awake()
		g.dropLink(code, reason)
		g.unqueue(true)
		if code != closeRevoked {
			return // the hub knows what runs, and hands it again after the restart
		}
		for c := range g.active {
			if c.turn != nil {
				g.endTurn(c, true)
			}
		}
		g.expireCards("")
	})
}

// busy reports whether the clock has something to look at.
func (g *gateway) busy() bool {
	return len(g.queue) > 0 || len(g.waiting) > 0 || len(g.active) > 0 || g.link != nil && !g.ready
}

// clock looks at all that depends on time and reports whether it should look
// again soon.
func (g *gateway) clock() (busy bool) {
	g.do(func() {
		now := g.a.now()
		if l := g.link; l != nil && !g.ready && now.Sub(g.connectedAt) > helloWithin {
			g.log.Warn("relay: no hello from the gateway")
			g.dropLink(closeTryLater, "no hello")
		}
		if it := g.inflight; it != nil && !g.wedged && now.Sub(it.written) > wedgeAfter {
			g.wedged, g.lastWedge, g.wedgedAt = true, now, it.written
			g.wedges++
			g.log.Warn("relay: no receipt for an event: the gateway's reader is stuck, it usually takes 30 s", "event", it.id)
			g.a.count(CountWedge, g.config().ID)
			g.changed()
		}
		if it := g.inflight; it != nil && now.Sub(it.written) > deafAfter {
			g.log.Warn("relay: still no receipt for the event, closing: the gateway dials again and gets it once more", "event", it.id, "tries", it.tries)
			g.dropLink(closeTryLater, "takes no events")
		}
		if g.link == nil && len(g.queue) > 0 && now.Sub(g.awaySince) > keepUnacked {
			g.unqueue(true)
		}
		for id, since := range g.waiting {
			if now.Sub(since) > answerWithin {
				g.answer(id, result{Error: "the connector is busy, try again"})
			}
		}
		for c := range g.active {
			g.lookAt(c, now)
		}
		if now.Sub(g.swept) > time.Minute {
			g.sweep(now)
		}
		busy = g.busy()
		g.watched = busy
	})
	return busy
}
