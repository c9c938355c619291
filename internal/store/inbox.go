package store

import (
	"context"
	"database/sql"
	"time"
)

// State of a message in the inbox.
type State int

// A message waits, then the agent has it, then its turn is done.
const (
	Waiting State = iota
	Handed
	Done
)

// Entry is an accepted message whose turn isn't done.
type Entry struct {
	N     int64
	ID    string
	State State
	Texts int // messages and files that its turn has stored
	Body  []byte
}

// Accept stores a message. If the device has already used the id, it stores nothing and dup is
// true. An empty id is never a duplicate. hash names the file of the message, if it has one.
func (t *Tx) Accept(device int64, id string, state State, body []byte, hash string, now time.Time) (n int64, dup bool, err error) {
	return t.AcceptFor(device, device, id, state, body, hash, now)
}

// AcceptFor is Accept for a message to the conversation of another device.
func (t *Tx) AcceptFor(conversation, device int64, id string, state State, body []byte, hash string, now time.Time) (n int64, dup bool, err error) {
	changed, n, err := t.exec("inbox.add", conversation, device, optional(id), now.UnixMilli(), int(state), body, optional(hash))
	return n, changed == 0, err
}

func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// HandedOver records that the agent has the message.
func (t *Tx) HandedOver(n int64) error { return t.must("inbox.handed", n) }

// HandedBack records that it doesn't have it after all.
func (t *Tx) HandedBack(n int64) error { return t.must("inbox.back", n) }

// TurnDone ends the turn of a message. Its id stays known.
func (t *Tx) TurnDone(n int64) error { return t.must("inbox.done", n) }

// Said counts a message or file that the turn of n has stored.
func (t *Tx) Said(n int64) error { return t.must("inbox.text", n) }

// Inbox returns the unfinished messages to a device's conversation, in the order in which they were
// accepted.
func (s *Store) Inbox(ctx context.Context, device int64) ([]Entry, error) {
	var list []Entry
	err := s.rows(ctx, "inbox.open", func(r *sql.Rows) error {
		var e Entry
		var id sql.NullString
		err := r.Scan(&e.N, &id, &e.State, &e.Texts, &e.Body)
		e.ID = id.String
		list = append(list, e)
		return err
	}, device)
	return list, err
}

// NewestInput returns the number of the newest accepted message, 0 if there is none.
func (s *Store) NewestInput(ctx context.Context) (n int64, err error) {
	err = s.rows(ctx, "inbox.newest", func(r *sql.Rows) error { return r.Scan(&n) })
	return n, err
}

// Seen reports whether a device has used a message id within the last day.
func (s *Store) Seen(ctx context.Context, device int64, id string) (bool, error) {
	found := false
	err := s.rows(ctx, "inbox.seen", func(*sql.Rows) error { found = true; return nil }, device, id)
	return found, err
}
