package device

import (
	"context"
	"iter"
	"sync"
)

// Events returns the events of the device, one after the other. The loop ends with a nil event and
// an error that says why: [ErrClosed], the error of ctx, or [ErrEventsInUse] when another loop or
// NextEvent runs. A later loop continues where the earlier one stopped.
//
// An event counts as handled when the loop body ends for it, also by break or return, but not by a
// panic. Only then the device moves its cursor, and the server may forget the event.
//
// A slow loop loses nothing durable. Up to Config.QueueBytes of events wait in memory; edits and
// states keep only the newest. Beyond that, the device stops reading for some seconds. Then it
// leaves durable frames to the server, and fetches them over a new connection when the loop has
// caught up. Receipts keep coming all the time.
func (d *Device) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if !d.loop.TryLock() {
			yield(nil, ErrEventsInUse)
			return
		}
		defer d.loop.Unlock()
		for {
			q, ok := d.in.take(ctx, d.ctx.Done())
			if !ok {
				yield(nil, d.closed(ctx, "wait for events"))
				return
			}
			if !d.handle(q, yield) {
				return
			}
		}
	}
}

// handle runs the loop body for one event, and then moves the cursor.
func (d *Device) handle(q queued, yield func(Event, error) bool) (more bool) {
	handled := false
	defer func() {
		empty := d.in.settle(handled)
		if handled {
			d.advance(q, empty)
		}
	}()
	more = yield(q.ev, nil)
	handled = true
	return more
}

// NextEvent returns the next event for a program that handles it elsewhere, for example on the
// thread of its user interface. The program calls handled once it has handled the event; without
// that call the next NextEvent returns the same event again. It returns [ErrClosed], the error of
// ctx, or [ErrEventsInUse] while an Events loop or another NextEvent runs.
func (d *Device) NextEvent(ctx context.Context) (ev Event, handled func(), err error) {
	if !d.loop.TryLock() {
		return nil, nil, ErrEventsInUse
	}
	defer d.loop.Unlock()
	q, ok := d.in.take(ctx, d.ctx.Done())
	if !ok {
		return nil, nil, d.closed(ctx, "wait for an event")
	}
	return q.ev, sync.OnceFunc(func() { d.advance(q, d.in.settle(true)) }), nil
}

// advance moves the cursor past a handled event. Once the inbox is empty, it fetches the frames
// that were left to the server.
func (d *Device) advance(q queued, empty bool) {
	d.acks.handled(q.epoch, q.seq)
	if l := d.connector.current(); empty && l != nil && l.lagging.Load() {
		l.end(errCatchUp)
	}
}

// Seen tells the server that the user saw everything that the loop has handled so far (an ack with
// seen, doc/protocol.md §3).
func (d *Device) Seen() { d.acks.markSeen() }
