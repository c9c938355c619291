package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"time"

	"hermes-mobile/frame"
)

// Device is one installation of an app.
type Device struct {
	N                       int64
	ID, Name, Platform, App string
	UserID, UserName        string
	Label                   string // of the token that it is bound to; empty: not bound
	TokenHash               string // of its own token; empty: none
	Epoch                   string // of its outbox
	Floor                   int64  // the outbox has nothing up to this seq
	Sent                    int64  // the newest seq sent on any connection
	Revoked                 bool
	Conversation            string // id of the device whose conversation it has joined; empty: its own
	Rights                  Rights
	CreatedAt               time.Time // when it became a device of its user; unique within a user
	SeenAt                  time.Time

	AnswersAt  time.Time // a new device may not answer cards before; zero: it may now
	ExpiresAt  time.Time // when its own token expires; zero: never
	NextHash   string    // of the token that replaces its own once the device acknowledges it; empty: none
	Rotate     bool      // replace its own token at the next hello
	ApprovedAt time.Time // when its user was first seen to be approved; zero: never
	WasUser    string    // of an unbound device: its former user, who owns the waiting messages
	Notices    bool      // its app shows notices of new devices
}

// Owner returns the user who owns what is stored for the device.
func (d *Device) Owner() string { return cmp.Or(d.UserID, d.WasUser) }

// Expired reports whether its own token has expired.
func (d *Device) Expired(now time.Time) bool {
	return !d.ExpiresAt.IsZero() && !now.Before(d.ExpiresAt)
}

// Bound reports whether the device belongs to somebody. An unbound device belongs to nobody until
// its next hello.
func (d *Device) Bound() bool { return d.Label != "" }

// Rights are what the owner allows a device.
type Rights struct {
	Write  bool `json:"write"`  // send messages and files, and stop the agent
	Answer bool `json:"answer"` // answer cards
	Call   bool `json:"call"`   // use the agent's calls
}

// AllRights are the rights of a new device.
var AllRights = Rights{Write: true, Answer: true, Call: true}

// Session returns the name that Hermes uses for the device's conversation.
func (d *Device) Session() string { return "mobile:" + d.Talks() }

// Talks returns the id of the device whose conversation this one takes part in, usually its own.
func (d *Device) Talks() string { return cmp.Or(d.Conversation, d.ID) }

func scanDevice(r *sql.Rows) (*Device, error) {
	d := &Device{}
	var created, seen, answers, expires, approved int64
	err := r.Scan(&d.N, &d.ID, &d.Name, &d.Platform, &d.App, &d.UserID, &d.UserName, &d.Label, &d.TokenHash, &d.Epoch, &d.Floor, &d.Sent,
		&d.Revoked, &d.Conversation, &d.Rights.Write, &d.Rights.Answer, &d.Rights.Call, &created, &seen, &answers, &expires, &d.NextHash, &d.Rotate, &approved,
		&d.WasUser, &d.Notices)
	d.CreatedAt, d.SeenAt = time.UnixMilli(created), time.UnixMilli(seen)
	d.AnswersAt, d.ExpiresAt, d.ApprovedAt = timeOrZero(answers), timeOrZero(expires), timeOrZero(approved)
	for _, name := range []*string{&d.Name, &d.Platform, &d.App, &d.UserName} {
		*name = frame.CleanName(*name) // an earlier version allowed more in names
	}
	return d, err
}

// timeOrZero converts a stored time, 0 for none.
func timeOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// millisOrZero converts a time for storing, 0 for none.
func millisOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func (s *Store) devices(ctx context.Context, name string, args ...any) ([]*Device, error) {
	var list []*Device
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		d, err := scanDevice(r)
		list = append(list, d)
		return err
	}, args...)
	return list, err
}

func one(list []*Device, err error) (*Device, error) {
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// Device returns the device with an id, nil if there is none.
func (s *Store) Device(ctx context.Context, id string) (*Device, error) {
	return one(s.devices(ctx, "device.id", id))
}

// DeviceByToken returns the device whose own token, or its replacement, has this hash. It is nil if
// there is none.
func (s *Store) DeviceByToken(ctx context.Context, hash string) (*Device, error) {
	return one(s.devices(ctx, "device.token", hash))
}

// Devices returns all devices, the last seen first.
func (s *Store) Devices(ctx context.Context) ([]*Device, error) { return s.devices(ctx, "device.list") }

// DevicesOf returns the devices of a user, revoked ones included.
func (s *Store) DevicesOf(ctx context.Context, user string) ([]*Device, error) {
	return s.devices(ctx, "device.user", user)
}

// DevicesKeeping returns the devices that may hold data of a user: the user's own, and unbound ones
// that were.
func (s *Store) DevicesKeeping(ctx context.Context, user string) ([]*Device, error) {
	return s.devices(ctx, "device.keeping", user)
}

// Work returns the ids of the devices with unfinished work: waiting messages, messages without an
// end, and cards that aren't acknowledged.
func (s *Store) Work(ctx context.Context) ([]string, error) { return s.strings(ctx, "device.work") }

func (s *Store) strings(ctx context.Context, name string, args ...any) ([]string, error) {
	var list []string
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		var v string
		err := r.Scan(&v)
		list = append(list, v)
		return err
	}, args...)
	return list, err
}

// AddDevice stores a new device with a new epoch and all rights.
func (t *Tx) AddDevice(d *Device, now time.Time) error {
	d.Epoch, d.Rights, d.CreatedAt, d.SeenAt = newEpoch(), AllRights, now, now
	_, n, err := t.exec("device.add", d.ID, d.Name, d.Platform, d.App, d.UserID, d.UserName, d.Label, d.TokenHash, d.Epoch, now.UnixMilli(), now.UnixMilli(),
		millisOrZero(d.ExpiresAt), millisOrZero(d.ApprovedAt), d.Notices)
	d.N = n
	return err
}

// SaveDevice stores what a hello may change: names, user, binding, own token, and the app's
// features.
func (t *Tx) SaveDevice(d *Device, now time.Time) error {
	return t.must("device.hello", d.Name, d.Platform, d.App, d.UserID, d.UserName, d.Label, d.TokenHash, now.UnixMilli(),
		millisOrZero(d.ExpiresAt), d.NextHash, d.Rotate, millisOrZero(d.ApprovedAt), d.WasUser, d.Notices, d.N)
}

// RenameDevice changes the display name.
func (t *Tx) RenameDevice(n int64, name string) error { return t.must("device.name", name, n) }

// SetRights changes the rights of a device.
func (t *Tx) SetRights(n int64, r Rights) error {
	return t.must("device.rights", r.Write, r.Answer, r.Call, n)
}

// UnbindDevice removes the device's binding, user, own token, pairing code, notification endpoints,
// and revocation. The messages that wait for it stay its former user's (WasUser).
func (t *Tx) UnbindDevice(n int64) error {
	if err := t.PairingCodes().Forget(n); err != nil {
		return err
	}
	if err := t.Notices().Forget(n); err != nil {
		return err
	}
	return t.must("device.unbind", n)
}

// RevokeDevice blocks a device and removes its own token and its pairing code.
func (t *Tx) RevokeDevice(n int64) error {
	if err := t.PairingCodes().Forget(n); err != nil {
		return err
	}
	return t.must("device.revoke", n)
}

// RotateToken marks a device's own token for replacement at its next hello, and sets the expiry of
// the new one. Zero means never.
func (t *Tx) RotateToken(n int64, expires time.Time) error {
	return t.must("device.rotate", millisOrZero(expires), n)
}

// RenewToken makes the replacement token with this hash the device's only one.
func (t *Tx) RenewToken(n int64, hash string) error { return t.must("device.renew", n, hash) }

// WipeDevice removes everything stored for a device and begins a new epoch of its outbox after seq.
func (t *Tx) WipeDevice(n, seq int64, now time.Time) (epoch string, err error) {
	epoch = newEpoch()
	for _, name := range []string{"inbox.wipe", "open.wipe", "card.wipe", "said.wipe", "share.wipe", "quote.wipe", "push.wipe", "notice.wipe"} {
		if err := t.must(name, n); err != nil {
			return "", err
		}
	}
	if err := t.must("delivery.expired", n, seq, now.UnixMilli()); err != nil {
		return "", err
	}
	if err := t.must("outbox.forget", n, seq); err != nil {
		return "", err
	}
	return epoch, t.must("device.wipe", epoch, seq, seq, n)
}

// Sent records the newest seq sent on a connection.
func (t *Tx) Sent(n, seq int64, now time.Time) error {
	return t.must("device.sent", seq, now.UnixMilli(), n)
}

func newEpoch() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
