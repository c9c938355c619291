package hub

import (
	"context"
	"time"

	"hermes-mobile/internal/store"
)

// DeliveryInfo describes the record of a delivery to the owner.
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

// DeliveryStates are the states of a delivery in their order. The last one replaces the others if the device did not
// connect in time.
var DeliveryStates = []string{"queued", "sent", "delivered", "seen", "expired"}

// Deliveries lists the newest deliveries, at most limit. A device and a state, unless empty, restrict the list.
func (o *Owner) Deliveries(ctx context.Context, device, state string, limit int) ([]DeliveryInfo, error) {
	list := []DeliveryInfo{}
	err := o.hub.store.Deliveries(ctx, device, func(d store.Delivery) bool {
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
