package hub

import (
	"time"

	"hermes-mobile/internal/notify"
)

// Sessions is the number of sessions in memory.
func (h *Hub) Sessions() int {
	n := 0
	h.each(func(*session) { n++ })
	return n
}

// ActionToken signs a token as a notification holds it.
func (h *Hub) ActionToken(device, card, option string) string {
	return h.notifications.Sign(notify.Action{Device: device, Card: card, Option: option, Expires: time.Now().Add(time.Hour).Unix()})
}

// Waiting is the number of events that a device's session has not begun to apply.
func (h *Hub) Waiting(device string) int {
	s := h.session(device)
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.mail)
}

// Sync waits until a device's session has applied everything that it was given before.
func (h *Hub) Sync(device string) {
	done := make(chan struct{})
	h.post(device, &asked{f: func(_ *session, _ *batch, d func(error)) { d(nil) }, done: func(error) { close(done) }})
	<-done
}
