package store

import (
	"context"
	"database/sql"
	"time"
)

// Notices reads notification endpoints and shown notifications.
type Notices struct{ s *Store }

// Notices returns the notifications, for reading.
func (s *Store) Notices() Notices { return Notices{s} }

// NoticesTx changes notification endpoints and shown notifications.
type NoticesTx struct{ t *Tx }

// Notices returns the notifications, for changing.
func (t *Tx) Notices() NoticesTx { return NoticesTx{t} }

// AddEndpoint stores an endpoint of a device, and replaces an earlier registration of the same
// endpoint.
func (n NoticesTx) AddEndpoint(device int64, endpoint string, body []byte, now time.Time) error {
	return n.t.must("push.add", device, endpoint, now.UnixMilli(), body)
}

// RemoveEndpoint removes an endpoint of a device.
func (n NoticesTx) RemoveEndpoint(device int64, endpoint string) error {
	return n.t.must("push.remove", device, endpoint)
}

// Forget removes all endpoints and notifications of a device.
func (n NoticesTx) Forget(device int64) error {
	if err := n.t.must("notice.wipe", device); err != nil {
		return err
	}
	return n.t.must("push.wipe", device)
}

// Endpoints returns the registered endpoints of a device, oldest first.
func (n Notices) Endpoints(ctx context.Context, device int64) (list [][]byte, err error) {
	err = n.s.rows(ctx, "push.list", func(r *sql.Rows) error {
		var body []byte
		err := r.Scan(&body)
		list = append(list, body)
		return err
	}, device)
	return list, err
}

// Notice is an outbox entry that a device was notified of.
type Notice struct {
	Seq int64
	ID  string // of the message, file or card
}

// Add records that a device was notified of its outbox entries after seq. shown says that the
// notification can be withdrawn.
func (n NoticesTx) Add(device, after int64, shown bool, now time.Time) error {
	return n.t.must("notice.add", device, after, now.UnixMilli(), !shown)
}

// Withdraw records that a notification is no longer shown.
func (n NoticesTx) Withdraw(device, seq int64) error { return n.t.must("notice.withdraw", device, seq) }

// Drop removes the withdrawn notices of entries that the device has.
func (n NoticesTx) Drop(device int64) error { return n.t.must("notice.drop", device) }

// Shown returns the entries that a device was notified of, without withdrawn ones, oldest first.
func (n Notices) Shown(ctx context.Context, device int64) (list []Notice, err error) {
	err = n.s.rows(ctx, "notice.shown", func(r *sql.Rows) error {
		var n Notice
		err := r.Scan(&n.Seq, &n.ID)
		list = append(list, n)
		return err
	}, device)
	return list, err
}

// Due returns the ids of the devices with an endpoint that weren't notified of all waiting entries.
func (n Notices) Due(ctx context.Context) ([]string, error) {
	return n.s.strings(ctx, "notice.due")
}

// Unread counts the outbox entries that wait to be shown to a person.
type Unread struct {
	Count int // of all
	Fresh int // of those that the device wasn't notified of
	List  []UnreadEntry
}

// UnreadEntry is a message or file, or an open card.
type UnreadEntry struct {
	Notice
	Kind  Kind
	Known bool // the device was notified of it
}

// Unread returns the entries for a person in a device's outbox after seq, and those before it whose
// notification is still shown: the newest first, at most limit.
func (n Notices) Unread(ctx context.Context, device, after int64, limit int) (u Unread, err error) {
	if err = n.s.rows(ctx, "unread.count", func(r *sql.Rows) error { return r.Scan(&u.Count, &u.Fresh) }, device, after); err != nil || u.Count == 0 {
		return u, err
	}
	err = n.s.rows(ctx, "unread.list", func(r *sql.Rows) error {
		var e UnreadEntry
		err := r.Scan(&e.Seq, &e.Kind, &e.ID, &e.Known)
		u.List = append(u.List, e)
		return err
	}, device, after, limit)
	return u, err
}
