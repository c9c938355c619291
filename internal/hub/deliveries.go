package hub

import (
	"time"

	"hermes-mobile/internal/store"
)

// sourceDeliver marks what a sender delivered; what the agent sends on schedule has frame.SourceCron.
const sourceDeliver = "deliver"

// sentDelay is the wait before a delivery that was written to the device is noted as sent. The acknowledgement, which says
// more, mostly comes first.
const sentDelay = time.Second

// deliveries notes how far the deliveries to one device have come.
type deliveries struct {
	*core
	mark    store.Trail // the watermarks
	written int64       // seq up to which the outbox has left for the device
	noting  timer
}

func (d *deliveries) idle() bool { return !d.noting.running() }
func (d *deliveries) close()     { d.noting.stop() }

// record returns what stores the record of a delivery along with the entry seq, which is appended next.
func (d *deliveries) record(r store.Delivery, seq int64) func(*store.Tx) error {
	device := d.dev.N
	d.mark.Last = seq // now: the entry is sent before its other followers hear that it is stored
	return func(tx *store.Tx) error {
		dup, err := tx.Deliver(r, device, seq, time.Now())
		switch {
		case err != nil:
			return err
		case dup:
			return errTwice
		}
		return nil
	}
}

// left notes that the outbox up to seq has left for the device.
func (d *deliveries) left(seq int64) {
	d.written = seq
	if min(seq, d.mark.Last) > d.mark.Sent {
		d.noting.start(d, sentDelay, func(b *batch) { b.then(d.noteSent) })
	}
}

// noteSent stores which deliveries were written to the device, without waiting for it.
func (d *deliveries) noteSent() {
	d.noting.stop()
	if seq := min(d.written, d.mark.Last); d.dev != nil && seq > d.mark.Sent {
		n, after, now := d.dev.N, d.mark.Sent, time.Now()
		d.note("note sent deliveries", func(tx *store.Tx) error { return tx.DeliveriesSent(n, after, seq, now) })
		d.mark.Sent = seq
	}
}

// acked stores that the device has its deliveries up to seq or, with seen, that a person was shown them. It must be called
// before the outbox forgets them.
func (d *deliveries) acked(seq int64, seen bool) {
	n, was, now := d.dev.N, d.mark, time.Now()
	seq = min(seq, d.mark.Last)
	switch {
	case seen && seq > d.mark.Seen:
		d.note("note seen deliveries", func(tx *store.Tx) error { return tx.DeliveriesSeen(n, was.Seen, seq, now) })
		d.mark.Seen = seq
	case seq > d.mark.Acked:
		d.note("note acknowledged deliveries", func(tx *store.Tx) error { return tx.DeliveriesAcked(n, was.Acked, seq, now) })
	default:
		return
	}
	d.mark.Sent, d.mark.Acked = max(d.mark.Sent, seq), max(d.mark.Acked, seq)
	if d.mark.Sent == d.mark.Last {
		d.noting.stop()
	}
}

// note stores watermarks. If that fails the next note covers the same deliveries.
func (d *deliveries) note(op string, f func(*store.Tx) error) {
	was := d.mark
	d.later(op, f, func() {
		d.mark.Sent, d.mark.Acked, d.mark.Seen = min(d.mark.Sent, was.Sent), min(d.mark.Acked, was.Acked), min(d.mark.Seen, was.Seen)
	})
}
