package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Reasons for rejecting a change in a transaction. The writer decides, so of two concurrent devices
// the second sees the first.
var (
	// ErrUserTaken reports that devices with another token belong to this user.
	ErrUserTaken = errors.New("the user belongs to devices with another token")
	// ErrManyDevices reports that the user has the maximum number of devices.
	ErrManyDevices = errors.New("the user has too many devices")
	// ErrTooNew reports that the device may not answer cards yet.
	ErrTooNew = errors.New("the device is too new to answer cards")
	// ErrManyUnapproved reports that the maximum number of devices with this token wait for
	// approval.
	ErrManyUnapproved = errors.New("too many devices with this token wait for approval")
)

// UserKnown reports whether a device or an API user has this user id.
func (s *Store) UserKnown(ctx context.Context, user string) (known bool, err error) {
	err = s.rows(ctx, "user.known", func(*sql.Rows) error { known = true; return nil }, user)
	return known, err
}

// ClaimUser gives a device a user that nobody has, or that has a device with the same token.
// Otherwise it returns ErrUserTaken.
func (t *Tx) ClaimUser(n int64, user, label string) error {
	return t.unless(ErrUserTaken, "device.claim", n, user, label)
}

// SoleDevice returns ErrUserTaken if a user has other devices that aren't revoked.
func (t *Tx) SoleDevice(n int64, user string) error {
	return t.unless(ErrUserTaken, "device.sole", n, user)
}

// FewDevices returns ErrManyDevices if a user has more than most devices that aren't revoked.
func (t *Tx) FewDevices(n int64, user string, most int) error {
	return t.unless(ErrManyDevices, "device.few", n, user, most)
}

// FewUnapproved returns ErrManyUnapproved if more than most devices with a token were never
// approved.
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

// EnterUser makes a device one of a user's, newer than all the others whatever the clock says. If
// the user has others that aren't revoked, it may not answer cards before answers, which is zero if
// it may.
func (t *Tx) EnterUser(n int64, user string, now, answers time.Time) error {
	return t.must("device.enter", n, user, now.UnixMilli(), millisOrZero(answers))
}

// WaitToAnswer keeps a device from answering cards before a time if its user has other devices that
// aren't revoked.
func (t *Tx) WaitToAnswer(n int64, until time.Time) error {
	return t.must("device.wait", n, until.UnixMilli())
}

// ShortenWait limits the time before which a device may not answer cards.
func (t *Tx) ShortenWait(n int64, until time.Time) error {
	return t.must("device.clamp", n, until.UnixMilli())
}

// MayAnswer returns ErrTooNew if a device may not answer cards yet.
func (t *Tx) MayAnswer(id string, now time.Time) error {
	return t.unless(ErrTooNew, "device.answers", id, now.UnixMilli())
}

// ApproveDevice records when a device's user was first seen to be approved.
func (t *Tx) ApproveDevice(n int64, now time.Time) error {
	return t.must("device.approved", n, now.UnixMilli())
}

// DropDevice removes a device and everything stored for it, except records of deliveries.
func (t *Tx) DropDevice(n int64) error {
	if err := t.PairingCodes().Forget(n); err != nil {
		return err
	}
	for _, name := range []string{"inbox.drop", "open.wipe", "card.drop", "said.wipe", "share.wipe", "quote.wipe", "push.wipe", "notice.wipe", "outbox.drop", "device.drop"} {
		if err := t.must(name, n); err != nil {
			return err
		}
	}
	return nil
}

// Any reports whether a device has a record of a delivery.
func (d Deliveries) Any(ctx context.Context, n int64) (any bool, err error) {
	err = d.s.rows(ctx, "delivery.any", func(*sql.Rows) error { any = true; return nil }, n)
	return any, err
}

// Unapproved returns the devices from before a time whose user was never approved.
func (s *Store) Unapproved(ctx context.Context, before time.Time) ([]*Device, error) {
	return s.devices(ctx, "device.unapproved", before.UnixMilli())
}
