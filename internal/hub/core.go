package hub

import (
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/store"
)

// core is what every part of a session is made with: the shared services, the queue, and the device. A part reads it and
// never replaces dev.
type core struct {
	*services
	queue
	id  string        // of the device
	dev *store.Device // nil: there is no such device
}

// peer returns the device as others in the conversation see it.
func (c *core) peer() frame.Peer { return frame.Peer{ID: c.id, Name: c.dev.Name} }

// accounts returns the accounts on which the device's messages and files are counted.
func (c *core) accounts() []quota.Account {
	own := quota.Account{Name: deviceAccount(c.id), Limit: c.DeviceShare}
	if c.dev.Label == "" || c.dev.Label == ownLabel(c.id) {
		return []quota.Account{own}
	}
	return []quota.Account{own, {Name: tokenAccount(c.dev.Label), Limit: c.TokenShare}}
}

// remembers reports whether the id of a frame that takes effect at once can be stored, to recognize it again. The id of a
// device that has used up its share cannot: the device could fill the disk with ids.
func (c *core) remembers(id string) bool {
	return id != "" && c.messageFits(rowBytes+2*int64(len(id)), c.accounts()) == nil
}

// countID counts the id of a frame that takes effect at once.
func (c *core) countID(id string) counted {
	return c.countMessage(rowBytes+2*int64(len(id)), c.accounts())
}

// rowBytes is the size of an inbox row beside its text, deliveryBytes that of the record of a delivery.
const (
	rowBytes      = 250
	deliveryBytes = 400
)

// retryAfter is the wait before something that failed for a moment is tried again.
const retryAfter = time.Second

// readNote reads the part of an outbox entry that a device is notified of.
func readNote(body []byte) (notify.Note, error) {
	e, err := readEntry(body)
	if err != nil {
		return notify.Note{}, err
	}
	return notify.Note{Message: e.Message, Media: e.Media, Prompt: e.Prompt, Notice: e.Notice}, nil
}
