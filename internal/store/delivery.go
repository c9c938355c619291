package store

import (
	"context"
	"database/sql"
	"time"
)

// Deliveries reads the records of deliveries.
type Deliveries struct{ s *Store }

// Deliveries returns the records of deliveries, for reading.
func (s *Store) Deliveries() Deliveries { return Deliveries{s} }

// DeliveriesTx changes the records of deliveries.
type DeliveriesTx struct{ t *Tx }

// Deliveries returns the records of deliveries, for changing.
func (t *Tx) Deliveries() DeliveriesTx { return DeliveriesTx{t} }

// Delivery is the record of something that was sent to a device unasked, and of how far it got.
type Delivery struct {
	N       int64
	At      time.Time
	Source  string // deliver, cron
	Sender  string // empty: the agent
	ID      string // chosen by the sender, may be empty
	Job     string // the scheduled job's name
	Device  string // its id
	Message string // id of the message or file
	Queued  bool   // the device was offline

	// When it was written to a connection of the device, acknowledged by the device, shown to a
	// person, or dropped because the device didn't connect in time. Zero: it wasn't.
	SentAt, AckedAt, SeenAt, ExpiredAt time.Time
}

// Add stores the record of a delivery whose outbox entry is seq. If the sender has already used the
// id, it stores nothing and dup is true. An empty id is never a duplicate.
func (d DeliveriesTx) Add(r Delivery, device, seq int64, now time.Time) (dup bool, err error) {
	changed, _, err := d.t.exec("delivery.add", r.Sender, optional(r.ID), now.UnixMilli(), r.Queued, r.Source, r.Job, device, seq, r.Message)
	return err == nil && changed == 0, err
}

// Known returns the answer to an earlier delivery. known is false if the sender hasn't used this id
// within a day.
func (d Deliveries) Known(ctx context.Context, sender, id string) (queued, known bool, err error) {
	err = d.s.rows(ctx, "delivery.id", func(r *sql.Rows) error { known = true; return r.Scan(&queued) }, sender, id)
	return queued, known, err
}

// Sent records that the deliveries of a device after one seq and up to another were written to a
// connection.
func (d DeliveriesTx) Sent(device, after, seq int64, now time.Time) error {
	return d.t.must("delivery.sent", device, seq, now.UnixMilli(), after)
}

// Acked records that a device has the deliveries after one seq and up to another.
func (d DeliveriesTx) Acked(device, after, seq int64, now time.Time) error {
	return d.t.must("delivery.acked", device, seq, now.UnixMilli(), after)
}

// Seen records that the deliveries after one seq and up to another were shown to a person.
func (d DeliveriesTx) Seen(device, after, seq int64, now time.Time) error {
	return d.t.must("delivery.seen", device, seq, now.UnixMilli(), after)
}

// Watermark is how far the deliveries of a device got: the newest, and the seqs up to which all
// were sent, acknowledged and seen.
type Watermark struct{ Last, Sent, Acked, Seen int64 }

// Watermark returns the watermark of a device.
func (d Deliveries) Watermark(ctx context.Context, device int64) (t Watermark, err error) {
	err = d.s.rows(ctx, "delivery.trail", func(r *sql.Rows) error {
		var unsent, unacked, unseen int64
		err := r.Scan(&t.Last, &unsent, &unacked, &unseen)
		before := func(first int64) int64 {
			if first == 0 {
				return t.Last
			}
			return first - 1
		}
		t.Sent, t.Acked, t.Seen = before(unsent), before(unacked), before(unseen)
		return err
	}, device)
	return t, err
}

// List calls f with the records of deliveries to a device, or to all if device is empty, newest
// first, until f returns false.
func (d Deliveries) List(ctx context.Context, device string, f func(Delivery) bool) error {
	err := d.s.rows(ctx, "delivery.list", func(r *sql.Rows) error {
		var one Delivery
		var at, sent, acked, seen, expired int64
		if err := r.Scan(&one.N, &at, &one.Source, &one.Sender, &one.ID, &one.Job, &one.Device, &one.Message, &sent, &acked, &seen, &expired); err != nil {
			return err
		}
		one.At, one.SentAt, one.AckedAt, one.SeenAt, one.ExpiredAt = timeOf(at), timeOf(sent), timeOf(acked), timeOf(seen), timeOf(expired)
		if !f(one) {
			return errEnough
		}
		return nil
	}, device)
	return enough(err)
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}
