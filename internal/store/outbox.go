package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"time"
)

// Kind is the kind of an outbox entry.
type Kind int

// The kinds of outbox entries.
const (
	KindMessage Kind = iota + 1
	KindMedia
	KindPrompt
	KindPromptDone
	KindEcho
	KindNotice
)

// Out is an entry of a device's outbox.
type Out struct {
	Seq  int64
	At   time.Time
	Kind Kind
	Body []byte
}

// Append stores an entry. The caller assigns seq, increasing within the device. hash names the file
// of the entry, if it has one.
func (t *Tx) Append(device, seq int64, kind Kind, body []byte, hash string, now time.Time) error {
	return t.must("outbox.add", device, seq, now.UnixMilli(), int(kind), body, optional(hash))
}

// Forget removes the entries of a device's outbox up to seq. Messages among them can still be
// quoted.
func (t *Tx) Forget(device, seq int64) error {
	if err := t.must("quote.keep", device, seq); err != nil {
		return err
	}
	if err := t.must("outbox.forget", device, seq); err != nil {
		return err
	}
	return t.must("device.floor", seq, device)
}

// Expire removes the entries up to seq that a device didn't fetch in time.
func (t *Tx) Expire(device, seq int64, now time.Time) error {
	if err := t.must("delivery.expired", device, seq, now.UnixMilli()); err != nil {
		return err
	}
	return t.Forget(device, seq)
}

// Outbox returns up to limit entries after seq, in order.
func (s *Store) Outbox(ctx context.Context, device, after int64, limit int) ([]Out, error) {
	return s.entries(ctx, "outbox.after", device, after, limit)
}

// OutboxCards returns the entries of a device that are cards, oldest first.
func (s *Store) OutboxCards(ctx context.Context, device int64) ([]Out, error) {
	return s.entries(ctx, "outbox.cards", device)
}

func (s *Store) entries(ctx context.Context, name string, args ...any) ([]Out, error) {
	var list []Out
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		var o Out
		var at int64
		err := r.Scan(&o.Seq, &at, &o.Kind, &o.Body)
		o.At = time.UnixMilli(at)
		list = append(list, o)
		return err
	}, args...)
	return list, err
}

// FirstSince returns the seq of the oldest entry since a time, 0 if there is none.
func (s *Store) FirstSince(ctx context.Context, device int64, since time.Time) (seq int64, err error) {
	err = s.rows(ctx, "outbox.since", func(r *sql.Rows) error { return r.Scan(&seq) }, device, since.UnixMilli())
	return seq, err
}

// OutboxBounds returns how many entries a device has, the newest seq (0 if none), and the bytes of
// the entries' bodies.
func (s *Store) OutboxBounds(ctx context.Context, device int64) (count int, newest, bytes int64, err error) {
	err = s.rows(ctx, "outbox.bounds", func(r *sql.Rows) error { return r.Scan(&count, &newest, &bytes) }, device)
	return count, newest, bytes, err
}

// OutboxBytes returns the bytes of the bodies in a device's outbox after seq.
func (s *Store) OutboxBytes(ctx context.Context, device, after int64) (bytes int64, err error) {
	err = s.rows(ctx, "outbox.bytes", func(r *sql.Rows) error { return r.Scan(&bytes) }, device, after)
	return bytes, err
}

// OutboxOldest returns the seq up to which the oldest entries after one must go to free some bytes
// of bodies, and how many bytes that frees: fewer if the outbox has fewer.
func (s *Store) OutboxOldest(ctx context.Context, device, after, bytes int64) (upTo, frees int64, err error) {
	err = s.rows(ctx, "outbox.sizes", func(r *sql.Rows) error {
		var size int64
		if err := r.Scan(&upTo, &size); err != nil {
			return err
		}
		if frees += size; frees >= bytes {
			return errEnough
		}
		return nil
	}, device, after)
	return upTo, frees, enough(err)
}

// Quote returns the first 500 characters of a final message, empty if they aren't stored. Until the
// device has the message, it is in the outbox.
func (s *Store) Quote(ctx context.Context, device int64, id string) (text string, err error) {
	err = s.rows(ctx, "quote.id", func(r *sql.Rows) error { return r.Scan(&text) }, device, id)
	return text, err
}

// NoteSaid records the text of an agent's final message to input n. n 0 stands for the last input
// that was answered.
func (t *Tx) NoteSaid(device, n int64, text string, now time.Time) error {
	return t.must("said.add", device, n, sumOf(text), now.UnixMilli())
}

// Said reports whether an agent's final message to input n had this text, as far back as texts are
// kept. n 0 stands for the last input that was answered.
func (s *Store) Said(ctx context.Context, device, n int64, text string) (known bool, err error) {
	err = s.rows(ctx, "said.known", func(*sql.Rows) error { known = true; return nil }, device, n, sumOf(text))
	return known, err
}

func sumOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:16]
}

// OpenMessage is a message that has begun and has no final.
type OpenMessage struct {
	ID, ReplyTo, Text string
	N                 int64
}

// SetOpen stores the progress of an open message.
func (t *Tx) SetOpen(device int64, m OpenMessage) error {
	return t.must("open.set", device, m.ID, m.N, m.ReplyTo, m.Text)
}

// CloseOpen records that a message has its final.
func (t *Tx) CloseOpen(device int64, id string) error { return t.must("open.close", device, id) }

// OpenMessages returns the messages of a device that have no final.
func (s *Store) OpenMessages(ctx context.Context, device int64) ([]OpenMessage, error) {
	var list []OpenMessage
	err := s.rows(ctx, "open.list", func(r *sql.Rows) error {
		var m OpenMessage
		err := r.Scan(&m.ID, &m.N, &m.ReplyTo, &m.Text)
		list = append(list, m)
		return err
	}, device)
	return list, err
}
