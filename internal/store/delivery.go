package store

import (
	"context"
	"database/sql"
	"time"
)

// Delivery is the record of something that was sent to a device without having been asked for, and how far it came.
type Delivery struct {
	N       int64
	At      time.Time
	Source  string // deliver, cron
	Sender  string // who delivered it; empty: the agent
	ID      string // the sender's own, may be empty
	Job     string // the scheduled job's name
	Device  string // its id
	Message string // id of the message or file
	Queued  bool   // the device was away

	// When it was written to a connection of the device, acknowledged by the device, shown to a person, or dropped because
	// the device did not come in time. Zero: it was not.
	SentAt, AckedAt, SeenAt, ExpiredAt time.Time
}

// Deliver stores the record of a delivery, whose entry in the outbox is seq. dup: this sender has used this id before, and
// nothing was stored. An empty id is never a duplicate.
func (t *Tx) Deliver(d Delivery, device, seq int64, now time.Time) (dup bool, err error) {
	changed, _, err := t.exec("delivery.add", d.Sender, optional(d.ID), now.UnixMilli(), d.Queued, d.Source, d.Job, device, seq, d.Message)
	return err == nil && changed == 0, err
}

// Delivered looks up what a delivery was answered; known is false when this sender has not used this id within a day.
func (s *Store) Delivered(ctx context.Context, sender, id string) (queued, known bool, err error) {
	err = s.rows(ctx, "delivery.id", func(r *sql.Rows) error { known = true; return r.Scan(&queued) }, sender, id)
	return queued, known, err
}

// DeliveriesSent notes that a device's deliveries after one seq and up to another were written to a connection.
func (t *Tx) DeliveriesSent(device, after, seq int64, now time.Time) error {
	return t.must("delivery.sent", device, seq, now.UnixMilli(), after)
}

// DeliveriesAcked notes that a device has the deliveries after one seq and up to another.
func (t *Tx) DeliveriesAcked(device, after, seq int64, now time.Time) error {
	return t.must("delivery.acked", device, seq, now.UnixMilli(), after)
}

// DeliveriesSeen notes that the deliveries after one seq and up to another were shown to a person.
func (t *Tx) DeliveriesSeen(device, after, seq int64, now time.Time) error {
	return t.must("delivery.seen", device, seq, now.UnixMilli(), after)
}

// Trail says how far the deliveries of a device have come: the newest, and up to where all were sent and so on.
type Trail struct{ Last, Sent, Acked, Seen int64 }

// Trail returns the trail of a device.
func (s *Store) Trail(ctx context.Context, device int64) (t Trail, err error) {
	err = s.rows(ctx, "delivery.trail", func(r *sql.Rows) error {
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

// Deliveries calls f with the records of deliveries to a device, or to all where it is empty, newest first, until f
// returns false.
func (s *Store) Deliveries(ctx context.Context, device string, f func(Delivery) bool) error {
	err := s.rows(ctx, "delivery.list", func(r *sql.Rows) error {
		var d Delivery
		var at, sent, acked, seen, expired int64
		if err := r.Scan(&d.N, &at, &d.Source, &d.Sender, &d.ID, &d.Job, &d.Device, &d.Message, &sent, &acked, &seen, &expired); err != nil {
			return err
		}
		d.At, d.SentAt, d.AckedAt, d.SeenAt, d.ExpiredAt = timeOf(at), timeOf(sent), timeOf(acked), timeOf(seen), timeOf(expired)
		if !f(d) {
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
