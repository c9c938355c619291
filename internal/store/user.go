package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Reasons for which a transaction gives a device no user. They are decided by the writer, so that of two devices that come at
// once the second sees the first.
var (
	// ErrUserTaken: devices with another token have this user.
	ErrUserTaken = errors.New("the user belongs to devices with another token")
	// ErrManyDevices: the user has the most devices that one may have.
	ErrManyDevices = errors.New("the user has too many devices")
	// ErrTooNew: the device may not answer cards yet.
	ErrTooNew = errors.New("the device is too new to answer cards")
	// ErrManyUnapproved: the token has the most devices that may wait for approval.
	ErrManyUnapproved = errors.New("too many devices with this token wait for approval")
)

// UserKnown reports whether a device or an API user names a user.
func (s *Store) UserKnown(ctx context.Context, user string) (known bool, err error) {
	err = s.rows(ctx, "user.known", func(*sql.Rows) error { known = true; return nil }, user)
	return known, err
}

// ClaimUser gives a device a user that nobody has, or that has a device with the same token. Else it is ErrUserTaken.
func (t *Tx) ClaimUser(n int64, user, label string) error {
	return t.unless(ErrUserTaken, "device.claim", n, user, label)
}

// SoleDevice is ErrUserTaken where a user has other devices than this one that are not revoked.
func (t *Tx) SoleDevice(n int64, user string) error {
	return t.unless(ErrUserTaken, "device.sole", n, user)
}

// FewDevices is ErrManyDevices where a user has more than so many devices that are not revoked.
func (t *Tx) FewDevices(n int64, user string, most int) error {
	return t.unless(ErrManyDevices, "device.few", n, user, most)
}

// FewUnapproved is ErrManyUnapproved where more than so many devices with a token were never approved.
func (t *Tx) FewUnapproved(n int64, label string, most int) error {
	return t.unless(ErrManyUnapproved, "device.strange", n, label, most)
}

func (t *Tx) unless(refused error, name string, args ...any) error {
	changed, _, err := t.exec(name, args...)
	if err == nil && changed == 0 {
		err = refused
	}
	return err
}

// EnterUser notes that a device is a user's from now on: later than all other devices of the user, whatever the clock says.
// Where the user has others that are not revoked it may not answer cards before a time, which is zero where it may.
func (t *Tx) EnterUser(n int64, user string, now, answers time.Time) error {
	return t.must("device.enter", n, user, now.UnixMilli(), millisOrZero(answers))
}

// WaitToAnswer keeps a device from answering cards before a time, where its user has others that are not revoked.
func (t *Tx) WaitToAnswer(n int64, until time.Time) error {
	return t.must("device.wait", n, until.UnixMilli())
}

// ShortenWait brings the time before which a device may not answer cards forward, where it is later.
func (t *Tx) ShortenWait(n int64, until time.Time) error {
	return t.must("device.clamp", n, until.UnixMilli())
}

// MayAnswer is ErrTooNew where a device may not answer cards yet.
func (t *Tx) MayAnswer(id string, now time.Time) error {
	return t.unless(ErrTooNew, "device.answers", id, now.UnixMilli())
}

// ApproveDevice notes that a device's user is approved, unless that was seen before.
func (t *Tx) ApproveDevice(n int64, now time.Time) error {
	return t.must("device.approved", n, now.UnixMilli())
}

// DropDevice forgets a device and everything that is kept for it. Records of deliveries to it, if there are any, stay.
func (t *Tx) DropDevice(n int64) error {
	if err := t.ForgetInvites(n); err != nil {
		return err
	}
	for _, name := range []string{"inbox.drop", "open.wipe", "card.drop", "said.wipe", "share.wipe", "quote.wipe", "push.wipe", "notice.wipe", "outbox.drop", "device.drop"} {
		if err := t.must(name, n); err != nil {
			return err
		}
	}
	return nil
}

// HasDeliveries reports whether there is a record of a delivery to a device.
func (s *Store) HasDeliveries(ctx context.Context, n int64) (any bool, err error) {
	err = s.rows(ctx, "delivery.any", func(*sql.Rows) error { any = true; return nil }, n)
	return any, err
}

// Unapproved returns the devices that were made before a time and whose user was never seen to be approved.
func (s *Store) Unapproved(ctx context.Context, before time.Time) ([]*Device, error) {
	return s.devices(ctx, "device.unapproved", before.UnixMilli())
}
