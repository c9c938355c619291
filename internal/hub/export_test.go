package hub

import (
	"time"

	"hermes-mobile/internal/notify"
)

// Sessions returns the number of sessions in memory.
func (h *Hub) Sessions() int {
	n := 0
	h.each(func(*device) { n++ })
	return n
}

// ActionToken signs a token as a notification holds it.
func (h *Hub) ActionToken(device, card, option string) string {
	return h.notifications.Sign(notify.Action{Device: device, Card: card, Option: option, Expires: time.Now().Add(time.Hour).Unix()})
}

// Waiting returns the number of events that a device's session has not begun to apply.
func (h *Hub) Waiting(id string) int {
	d := h.device(id)
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.mailbox)
}

// Sync waits until a device's session has applied everything that it was given before.
func (h *Hub) Sync(id string) {
	done := make(chan struct{})
	h.post(id, &evOwnerCall{f: func(_ *device, _ *batch, d func(error)) { d(nil) }, done: func(error) { close(done) }})
	<-done
}
