package store

import (
	"context"
	"database/sql"
)

// Join adds a device to the conversation of another, which must have its own. An empty name returns
// it to its own.
func (t *Tx) Join(device int64, conversation string) error {
	return t.must("device.join", conversation, device)
}

// Part ends the sharing of a device: the device, and every device that had joined it, has its own
// conversation again.
func (t *Tx) Part(device int64) error { return t.must("device.part", device) }

// Members returns the ids of the devices that have joined a conversation.
func (s *Store) Members(ctx context.Context, conversation string) ([]string, error) {
	return s.strings(ctx, "device.members", conversation)
}

// Sharing reports whether any conversation is shared.
func (s *Store) Sharing(ctx context.Context) (yes bool, err error) {
	err = s.rows(ctx, "device.sharing", func(*sql.Rows) error { yes = true; return nil })
	return yes, err
}

// Share gives an outbox entry to all devices of a conversation but one. Each device moves it into
// its own outbox, because only its session assigns numbers there.
func (t *Tx) Share(conversation string, except int64, kind Kind, body []byte, hash string) error {
	return t.must("share.add", conversation, int(kind), body, optional(hash), except)
}

// Notify gives a notice to the other devices of a user whose apps show notices, to at most most of
// them.
func (t *Tx) Notify(user string, except int64, body []byte, most int) error {
	return t.must("share.notice", user, except, int(KindNotice), body, most)
}

// SharedAny reports whether any device has an entry to move.
func (s *Store) SharedAny(ctx context.Context) (yes bool, err error) {
	err = s.rows(ctx, "share.any", func(*sql.Rows) error { yes = true; return nil })
	return yes, err
}

// Shared is an entry that a device hasn't moved into its outbox yet.
type Shared struct {
	N    int64
	Kind Kind
	Body []byte
	Hash string
}

// Shared returns up to limit entries for a device after n, in order.
func (s *Store) Shared(ctx context.Context, device, n int64, limit int) ([]Shared, error) {
	var list []Shared
	err := s.rows(ctx, "share.list", func(r *sql.Rows) error {
		var e Shared
		err := r.Scan(&e.N, &e.Kind, &e.Body, &e.Hash)
		list = append(list, e)
		return err
	}, device, n, limit)
	return list, err
}

// TakeShared removes an entry that the same transaction stores in the device's outbox.
func (t *Tx) TakeShared(n int64) error { return t.must("share.take", n) }
