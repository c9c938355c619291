package relay

import (
	"errors"
	"log/slog"
	"slices"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	stallAfter  = time.Second     // an ack that takes longer means a stall; 2 to 5 ms are usual (doc/hermes/relay.md §5)
	giveUpAfter = 2 * time.Minute // without an ack the connection is closed; a stall takes 30 s (§7)
	keepUnacked = 2 * time.Minute // how long a written event is kept while the gateway is offline
	maxTries    = 8               // an event over which so many connections were lost is rejected
)

// item is one event for the gateway. Its functions are called locked.
type item struct {
	id       string // of the message, and its bufferId
	frame    []byte
	device   string
	written  func()      // called when it is written; may be nil
	acked    func()      // called when the gateway has it
	rejected func(error) // called when it will not be sent any more
	lost     func()      // called when it was written, whether it arrived is not known, and it may not be sent again
	command  bool        // the gateway handles it itself
	joins    int64       // the number of the input whose running turn it must join; 0: none
	given    agent.Given // what is stored before it is written, where the gateway does not drop repeats

	writtenAt time.Time // zero: not on this connection
	sent      bool      // it was written on some connection: the gateway may have it
	tries     int
	noting    bool // given is being stored
	noted     bool // given is stored
}

// maxFrame bounds an event in bytes: the WebSocket library of the gateway closes the connection at
// 1 MiB a message (its default, read in its source).
const maxFrame = 1<<20 - 1024

var errTooLong = errors.New("it is too long for the gateway, send it as a file or in parts")

// newItem returns the item of an event, whose functions must still be set.
func newItem(device string, ev event, given agent.Given) (*item, error) {
	it := &item{id: ev.MessageID, device: device, given: given}
	it.frame = encode(inboundFrame{Type: "inbound", BufferID: it.id, Event: ev})
	if len(it.frame) > maxFrame {
		return nil, errTooLong
	}
	return it, nil
}

// queue is the submit queue of a gateway. It has one event in flight: the gateway handles each event
// in the loop that reads its socket, and may stall in it (doc/hermes/relay.md §7). The lock of the
// gateway must be held.
//
// Gateways before 0.20.6 run an event a second time when it comes a second time. So nothing that may
// have arrived there is sent again. Before such an event is written, the hub stores that
// ([agent.Given]). If the connection, the gateway or this process ends after that, it is unknown
// whether the event arrived. Often the next op of the gateway shows it. Otherwise the user is told.
type queue struct {
	now     func() time.Time
	log     *slog.Logger
	count   func(what string)
	wire    *wire
	traits  *traits
	reports *reports
	onAck   func() // called after each ack

	list      []*item
	inflight  *item // list[0], or nil
	stalled   bool
	stalledAt time.Time
	stalls    int64
	lastStall time.Time
}

func (q *queue) add(it *item) {
	q.list = append(q.list, it)
	q.pump()
}

// pump sends the next event if none is in flight.
func (q *queue) pump() {
	if q.inflight != nil || !q.wire.online() || len(q.list) == 0 {
		return
	}
	it := q.list[0]
	if it.tries >= maxTries {
		q.log.Error("event rejected after too many lost connections", "event", it.id, "tries", it.tries)
		q.list = q.list[1:]
		q.takeBack(it)
		it.rejected(errors.New("the agent's gateway could not take this message"))
		q.pump()
		return
	}
	if q.noteFirst(it) {
		return
	}
	if !q.wire.send(it.frame) {
		return // the connection is being closed
	}
	it.writtenAt, it.sent = q.now(), true
	it.tries++
	q.inflight = it
	if it.written != nil {
		it.written()
	}
}

// ack handles an inbound_ack (doc/hermes/relay.md §5). An ack of an event that is not in flight is a
// repeat.
func (q *queue) ack(id string) {
	it := q.inflight
	if it == nil || it.id != id {
		return
	}
	q.inflight = nil
	q.list = q.list[1:]
	if q.stalled {
		q.stalled = false
		q.log.Info("gateway accepts events again", "after", q.now().Sub(it.writtenAt).Round(time.Millisecond))
		q.reports.changed()
	}
	it.acked()
	q.onAck()
	q.pump()
}

// noteFirst stores that an event is about to be written, if the gateway does not drop repeats, and
// reports whether that must be waited for.
func (q *queue) noteFirst(it *item) bool {
	if it.noting || it.noted || it.given == (agent.Given{}) || q.traits.version.dropsRepeats() {
		return it.noting
	}
	it.noting = true
	q.reports.store(it.device, 0, func(err error) {
		it.noting, it.noted = false, err == nil
		if err != nil && len(q.list) > 0 && q.list[0] == it {
			q.list = q.list[1:]
			it.rejected(agent.ErrAway)
		}
		q.pump()
	}, it.given)
	return true
}

// takeBack stores that an event was not written after all.
func (q *queue) takeBack(it *item) {
	if it.sent || !it.noting && !it.noted {
		return
	}
	back := it.given
	back.Back = true
	q.reports.post(it.device, back)
}

// withdraw removes and returns the unsent events that match.
func (q *queue) withdraw(match func(*item) bool) (list []*item) {
	q.list = slices.DeleteFunc(q.list, func(it *item) bool {
		if it.sent || !match(it) {
			return false
		}
		list = append(list, it)
		return true
	})
	return list
}

// giveBack returns to the hub the events that were never written, or all. An event that may have
// arrived at a gateway that does not drop repeats is never sent again.
func (q *queue) giveBack(all bool) {
	keep := q.list[:0:0]
	for _, it := range q.list {
		switch {
		case it.sent && !q.traits.version.dropsRepeats():
			it.lost()
		case it.sent && !all:
			keep = append(keep, it)
		default:
			q.takeBack(it)
			it.rejected(agent.ErrAway)
		}
	}
	q.list = keep
	q.inflight = nil
}

// reset forgets what belongs to a connection that is over.
func (q *queue) reset() {
	q.stalled = false
	for _, it := range q.list {
		it.writtenAt = time.Time{}
	}
}

// clock notices a missing ack, first as a stall and then as a connection that must be closed.
func (q *queue) clock(now time.Time) {
	if it := q.inflight; it != nil && !q.stalled && now.Sub(it.writtenAt) > stallAfter {
		q.stalled, q.lastStall, q.stalledAt = true, now, it.writtenAt
		q.stalls++
		q.log.Warn("gateway stalled: no ack for an event, usually for 30 s", "event", it.id)
		q.count(CountWedge)
		q.reports.changed()
	}
	if it := q.inflight; it != nil && now.Sub(it.writtenAt) > giveUpAfter {
		q.log.Warn("gateway still stalled, closing the connection to have it dial again", "event", it.id, "tries", it.tries)
		q.wire.close(closeTryLater, "takes no events")
	}
}
