package hub

import (
	"context"
	"time"

	"hermes-mobile/internal/store"
)

// sourceDeliver marks what somebody delivered; what the agent sent on schedule has frame.SourceCron.
const sourceDeliver = "deliver"

// record returns what stores the record of a delivery along with the entry that is appended next.
func (s *session) record(d store.Delivery) func(*store.Tx) error {
	device, seq := s.dev.N, s.seq+1
	s.trail.Last = seq // now: the entry is sent before anything else is told that it is stored
	return func(tx *store.Tx) error {
		dup, err := tx.Deliver(d, device, seq, time.Now())
		switch {
		case err != nil:
			return err
		case dup:
			return errTwice
		}
		return nil
	}
}

// sentLater is how long a delivery that was written to the device is not noted to be: the acknowledgement, which says more, mostly
// comes first.
const sentLater = time.Second

// deliveriesSentSoon sees to it that what was written to the device is noted.
func (s *session) deliveriesSentSoon() {
	if min(s.written, s.trail.Last) > s.trail.Sent {
		s.start(&s.timers.sent, sentLater, sentDue{})
	}
}

type sentDue struct{}

func (sentDue) apply(s *session, b *batch) {
	b.then(func() {
		s.timers.sent = nil
		s.deliveriesSent()
	})
}

// deliveriesSent notes what was written to the device, without waiting for it.
func (s *session) deliveriesSent() {
	stop(&s.timers.sent)
	if seq := min(s.written, s.trail.Last); s.dev != nil && seq > s.trail.Sent {
		n, after, now := s.dev.N, s.trail.Sent, time.Now()
		s.noteTrail("note which deliveries were sent", func(tx *store.Tx) error { return tx.DeliveriesSent(n, after, seq, now) })
		s.trail.Sent = seq
	}
}

// deliveriesAcked notes what the device has, and seen, what a person was shown. It is called before the outbox forgets.
func (s *session) deliveriesAcked(seq int64, seen bool) {
	n, was, now := s.dev.N, s.trail, time.Now()
	seq = min(seq, s.trail.Last)
	switch {
	case seen && seq > s.trail.Seen:
		s.noteTrail("note which deliveries were seen", func(tx *store.Tx) error { return tx.DeliveriesSeen(n, was.Seen, seq, now) })
		s.trail.Seen = seq
	case seq > s.trail.Acked:
		s.noteTrail("note which deliveries arrived", func(tx *store.Tx) error { return tx.DeliveriesAcked(n, was.Acked, seq, now) })
	default:
		return
	}
	s.trail.Sent, s.trail.Acked = max(s.trail.Sent, seq), max(s.trail.Acked, seq)
	if s.trail.Sent == s.trail.Last {
		stop(&s.timers.sent)
	}
}

// noteTrail stores how far deliveries have come. Where that fails the next note tells of the same ones.
func (s *session) noteTrail(what string, op func(*store.Tx) error) {
	was := s.trail
	s.laterOr(what, op, func() {
		s.trail.Sent, s.trail.Acked, s.trail.Seen = min(s.trail.Sent, was.Sent), min(s.trail.Acked, was.Acked), min(s.trail.Seen, was.Seen)
	})
}

// DeliveryInfo is the record of a delivery as the owner sees it.
type DeliveryInfo struct {
	Number  int64     `json:"number"`
	At      time.Time `json:"at"`
	Device  string    `json:"device"`
	Source  string    `json:"source"`           // deliver, cron
	Sender  string    `json:"sender,omitempty"` // who delivered it; not for cron
	ID      string    `json:"id,omitempty"`     // the sender's own
	Job     string    `json:"job,omitempty"`    // the scheduled job's name
	Message string    `json:"message"`          // id of the message or file
	State   string    `json:"state"`            // queued, sent, delivered, seen, expired

	SentAt      *time.Time `json:"sent_at,omitempty"`
	DeliveredAt *time.Time `json:"delivered_at,omitempty"`
	SeenAt      *time.Time `json:"seen_at,omitempty"`
	ExpiredAt   *time.Time `json:"expired_at,omitempty"`
}

// DeliveryStates are the states of a delivery, in the order in which it takes them. The last is instead of the others: the
// device did not come in time.
var DeliveryStates = []string{"queued", "sent", "delivered", "seen", "expired"}

// Deliveries lists the newest deliveries, at most limit, to one device where it is named, and in one state where that is.
func (h *Hub) Deliveries(ctx context.Context, device, state string, limit int) ([]DeliveryInfo, error) {
	list := []DeliveryInfo{}
	err := h.store.Deliveries(ctx, device, func(d store.Delivery) bool {
		info := DeliveryInfo{Number: d.N, At: d.At.UTC(), Device: d.Device, Source: d.Source, Sender: d.Sender, ID: d.ID, Job: d.Job, Message: d.Message}
		info.State = DeliveryStates[0]
		for i, at := range []time.Time{d.SentAt, d.AckedAt, d.SeenAt, d.ExpiredAt} {
			if !at.IsZero() {
				at := at.UTC()
				*[]**time.Time{&info.SentAt, &info.DeliveredAt, &info.SeenAt, &info.ExpiredAt}[i] = &at
				info.State = DeliveryStates[i+1]
			}
		}
		if state == "" || state == info.State {
			list = append(list, info)
		}
		return len(list) < limit
	})
	return list, err
}
