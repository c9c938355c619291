package store

import (
	"context"
	"database/sql"
	"time"
)

// AddPush notes where a device wants to be notified, in place of what was noted for the same endpoint.
func (t *Tx) AddPush(device int64, endpoint string, body []byte, now time.Time) error {
	return t.must("push.add", device, endpoint, now.UnixMilli(), body)
}

// RemovePush forgets an endpoint of a device.
func (t *Tx) RemovePush(device int64, endpoint string) error {
	return t.must("push.remove", device, endpoint)
}

// ForgetPush forgets all endpoints of a device, and what it was notified of.
func (t *Tx) ForgetPush(device int64) error {
	if err := t.must("notice.wipe", device); err != nil {
		return err
	}
	return t.must("push.wipe", device)
}

// Push returns where a device wants to be notified, oldest first.
func (s *Store) Push(ctx context.Context, device int64) (list [][]byte, err error) {
	err = s.rows(ctx, "push.list", func(r *sql.Rows) error {
		var body []byte
		err := r.Scan(&body)
		list = append(list, body)
		return err
	}, device)
	return list, err
}

// Notice is an entry of a device's outbox that it was notified of.
type Notice struct {
	Seq int64
	ID  string // of the message, file or card
}

// AddNotices notes that a device was notified of what its outbox holds after seq; shown: so that it can be withdrawn.
func (t *Tx) AddNotices(device, after int64, shown bool, now time.Time) error {
	return t.must("notice.add", device, after, now.UnixMilli(), !shown)
}

// Withdraw notes that a notification is no longer shown.
func (t *Tx) Withdraw(device, seq int64) error { return t.must("notice.withdraw", device, seq) }

// DropNotices forgets the notices that were withdrawn of entries that the device has.
func (t *Tx) DropNotices(device int64) error { return t.must("notice.drop", device) }

// Notices returns what a device was notified of and is not withdrawn, oldest first.
func (s *Store) Notices(ctx context.Context, device int64) (list []Notice, err error) {
	err = s.rows(ctx, "notice.shown", func(r *sql.Rows) error {
		var n Notice
		err := r.Scan(&n.Seq, &n.ID)
		list = append(list, n)
		return err
	}, device)
	return list, err
}

// NoticesDue returns the ids of the devices that want to be notified and were not of all that waits for them.
func (s *Store) NoticesDue(ctx context.Context) ([]string, error) {
	return s.strings(ctx, "notice.due")
}

// Unread is what waits in an outbox to be shown to a person.
type Unread struct {
	Count int // of all
	Fresh int // that the device was not notified of
	List  []UnreadEntry
}

// UnreadEntry is a message or file, or an open card.
type UnreadEntry struct {
	Notice
	Kind  Kind
	Known bool // the device was notified of it
}

// Unread returns what a device's outbox holds after seq for a person, and of what is before that, what the device is shown a notification
// of: the newest first and at most limit of it.
func (s *Store) Unread(ctx context.Context, device, after int64, limit int) (u Unread, err error) {
	if err = s.rows(ctx, "unread.count", func(r *sql.Rows) error { return r.Scan(&u.Count, &u.Fresh) }, device, after); err != nil || u.Count == 0 {
		return u, err
	}
	err = s.rows(ctx, "unread.list", func(r *sql.Rows) error {
		var e UnreadEntry
		err := r.Scan(&e.Seq, &e.Kind, &e.ID, &e.Known)
		u.List = append(u.List, e)
		return err
	}, device, after, limit)
	return u, err
}
