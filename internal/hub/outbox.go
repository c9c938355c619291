package hub

import (
	"context"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// outbox holds what is stored for one device, and gives it to the live connection. seq numbers the entries. The connection
// was given everything up to cursor. It lags if there are entries after that; then a pump reads them from the store as the
// connection drains, and live-only frames are left out until it has caught up.
type outbox struct {
	*core
	conn       *conn // nil: the device is not connected
	lagging    bool
	seq        int64 // of the newest entry
	cursor     int64 // newest seq given to conn
	part       int   // parts of the file after cursor that conn was given
	count      int   // entries, at most
	held       heldBytes
	deliveries *deliveries
	observer   observer
}

// observer is told what happens to the outbox.
type observer interface {
	// entryStored is called when an entry is stored, after it was sent.
	entryStored(e *entry)
	// entryGiven is called when the connection was given an entry.
	entryGiven(e *entry)
	// flushSteps sends steps of messages that wait for their time, before an entry that is shown below them.
	flushSteps()
	// caughtUp is called when the connection lags no more, or is not given more for now.
	caughtUp()
	// mayRevoke reports whether the device may revoke another one.
	mayRevoke(id string) (yes bool, other *store.Device, err error)
}

// load reads the bounds of the outbox.
func (o *outbox) load(ctx context.Context, dev *store.Device) error {
	sweeps := o.sweeps.Load()
	count, last, held, err := o.store.OutboxBounds(ctx, dev.N)
	if err != nil {
		return err
	}
	o.count, o.seq = count, max(last, dev.Floor, dev.Sent)
	o.held = heldBytes{bytes: held, known: sweeps}
	return nil
}

func (o *outbox) idle() bool { return o.conn == nil }

// unload forgets everything. The device is not connected.
func (o *outbox) unload() {
	o.seq, o.count, o.held, o.cursor, o.part, o.lagging = 0, 0, heldBytes{}, 0, 0, false
}

// restart makes the outbox empty and begin after seq.
func (o *outbox) restart(epoch string, seq int64) {
	o.dev.Epoch, o.dev.Floor, o.dev.Sent, o.count, o.held = epoch, seq, seq, 0, heldBytes{}
}

// begin makes c the live connection, which has everything up to seq.
func (o *outbox) begin(c *conn, seq int64) {
	o.conn, c.drainer = c, o
	o.cursor, o.part = seq, 0
	o.deliveries.written = seq
	o.lagging = o.seq > seq
}

// append stores an entry with whatever op stores, and then sends it. after may be nil.
func (o *outbox) append(b *batch, e *entry, op func(*store.Tx) error, after func(error)) {
	o.seq++
	e.seq = o.seq
	body := e.encode()
	device, size := o.dev.N, int64(len(body))
	drop, freed := o.makeRoom(size)
	if o.count >= o.OutboxEntries {
		if oldest := o.seq - int64(o.count); oldest > drop { // entries have consecutive numbers: this leaves room for one
			drop = oldest
			o.held.cutTo(drop)
		}
	} else {
		o.count++ // now: others of the same batch count it; if storing fails it is an upper bound
	}
	if drop > 0 {
		o.count = int(min(int64(o.count), o.seq-drop))
		o.deliveries.noteSent() // otherwise those would expire
	}
	b.do(func(tx *store.Tx) error {
		if drop > 0 {
			if err := tx.Expire(device, drop, time.Now()); err != nil {
				return err
			}
		}
		if err := tx.Append(device, e.seq, e.kind(), body, e.Hash, time.Now()); err != nil {
			return err
		}
		if op != nil {
			return op(tx)
		}
		return nil
	}, func(err error) {
		o.held.stored(size, freed, err)
		if err == nil {
			o.dev.Floor = max(o.dev.Floor, drop)
			o.deliver(e)
			o.observer.entryStored(e)
		}
		if after != nil {
			after(err)
		}
	})
}

// deliver sends a stored entry to the live connection, unless older ones must come first: then the pump brings it.
func (o *outbox) deliver(e *entry) {
	if o.conn == nil || e.seq <= o.cursor { // a connection that began in the same batch has read it from the store
		return
	}
	if e.Prompt != nil || e.Media != nil {
		o.observer.flushSteps()
	}
	if o.lagging || o.conn.full() {
		o.lagging = true
		o.conn.await()
		return
	}
	if o.give(e) {
		o.lagging = true
		o.conn.await()
	}
}

// drained implements drainer.
func (o *outbox) drained(c *conn) {
	o.run(func(b *batch) {
		b.then(func() {
			if o.conn == c {
				o.pump()
			}
		})
	})
}

// pumpRows bounds the entries of one read.
const pumpRows = 16

// pump sends the backlog as far as the connection accepts it, and then what is live.
func (o *outbox) pump() {
	for o.lagging {
		if o.conn.full() {
			o.conn.await()
			return
		}
		rows, err := o.store.Outbox(o.ctx, o.dev.N, o.cursor, pumpRows)
		if err != nil {
			o.storeFailed("read an outbox", err)
			o.conn.send(storeDown(""))
			o.conn.end(frame.CloseTryLater, "the store failed")
			return
		}
		for _, row := range rows {
			if o.conn.full() {
				break
			}
			e, err := readEntry(row.Body)
			if err != nil {
				o.log.Error("stored frame corrupt", "device", o.id, "seq", row.Seq, "err", err)
				o.cursor = row.Seq
				continue
			}
			e.seq = row.Seq
			if o.give(e) {
				break
			}
		}
		if o.cursor >= o.seq || len(rows) == 0 {
			o.lagging = false
		}
	}
	o.noteWritten()
	o.observer.caughtUp()
}

// live sends a frame that means something only now. A connection that lags does not get it: it is told the present state
// when it has caught up.
func (o *outbox) live(f frame.Down) {
	if o.conn != nil && !o.lagging {
		o.conn.send(f)
	}
}

// ready reports whether live frames can be sent.
func (o *outbox) ready() bool { return o.conn != nil && !o.lagging }

// noteWritten notes how far the outbox has left for the device.
func (o *outbox) noteWritten() {
	if o.conn.clear() {
		o.deliveries.left(o.cursor)
	}
}

// noteSent stores how far the device was sent its outbox, without waiting for it.
func (o *outbox) noteSent() {
	seq := o.deliveries.written
	if o.dev == nil || seq <= o.dev.Sent {
		return
	}
	n := o.dev.N
	o.dev.Sent = seq
	o.later("note what was sent", func(tx *store.Tx) error { return tx.Sent(n, seq, time.Now()) }, nil)
}

// forget drops the entries up to seq, which the device has stored. It reports whether there were any.
func (o *outbox) forget(seq int64) bool {
	if seq = min(seq, o.seq); seq <= o.dev.Floor {
		return false
	}
	n, dev := o.dev.N, o.dev
	o.deliveries.acked(seq, false)
	o.later("forget acknowledged entries", func(tx *store.Tx) error { return tx.Forget(n, seq) }, nil)
	dev.Floor = seq
	dev.Sent = max(dev.Sent, seq)
	o.deliveries.written = max(o.deliveries.written, seq)
	o.count = int(min(int64(o.count), o.seq-seq)) // an upper bound: numbers may have been skipped
	o.held.forgot(seq == o.seq)
	if seq > o.cursor {
		o.cursor, o.part = seq, 0
	}
	return true
}

// cork makes one write of the frames that the connection is given until the returned function is called.
func (o *outbox) cork() (uncork func()) {
	c := o.conn
	if c == nil {
		return func() {}
	}
	c.ws.Cork()
	return func() {
		c.ws.Uncork()
		if o.conn == c {
			o.noteWritten()
		}
	}
}
