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

// Device is one installation of an app, as the store knows it.
type Device struct {
	N                       int64
	ID, Name, Platform, App string
	UserID, UserName        string
	Label                   string // of the token it is bound to; empty = not bound
	TokenHash               string // of its own token; empty = none
	Epoch                   string // the life of its outbox
	Floor                   int64  // everything up to this seq is gone from the outbox
	Sent                    int64  // the newest seq that some connection was sent
	Revoked                 bool
	Conversation            string // id of the device whose conversation it has joined; empty = its own
	Rights                  Rights
	CreatedAt               time.Time // since when it is a device of its user; within a user no two are the same
	SeenAt                  time.Time

	AnswersAt  time.Time // a new device may not answer cards before; zero: it may
	ExpiresAt  time.Time // when its own token ends; zero: never
	NextHash   string    // of the token that replaces its own once the device acknowledges it; empty: none
	Rotate     bool      // its own token is to be replaced when it comes next
	ApprovedAt time.Time // when its user was first seen to be approved; zero: never
	WasUser    string    // of an unbound device: the user it had, whose is what waits for it
	Notices    bool      // its app shows notices of new devices
}

// Owner is the user whose is what is kept for the device.
func (d *Device) Owner() string { return cmp.Or(d.UserID, d.WasUser) }

// Expired reports whether the time of its own token is over.
func (d *Device) Expired(now time.Time) bool {
	return !d.ExpiresAt.IsZero() && !now.Before(d.ExpiresAt)
}

// Bound reports whether the device is somebody's: an unbound one is nobody's until it says hello again.
func (d *Device) Bound() bool { return d.Label != "" }

// Rights are what the owner lets a device do.
type Rights struct {
	Write  bool `json:"write"`  // send messages and files, and stop the agent
	Answer bool `json:"answer"` // answer cards
	Call   bool `json:"call"`   // use the agent's calls
}

// AllRights are those of a device of which the owner has said nothing.
var AllRights = Rights{Write: true, Answer: true, Call: true}

// Session is the device's conversation as Hermes names it.
func (d *Device) Session() string { return "mobile:" + d.Talks() }

// Talks is the id of the device whose conversation this one takes part in: mostly its own.
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
		*name = frame.CleanName(*name) // an earlier version let more into names
	}
	return d, err
}

// timeOrZero reads a stored time in which 0 stands for none.
func timeOrZero(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// millisOrZero is how a time is stored in which 0 stands for none.
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

// Device returns a device by its id, nil when there is none.
func (s *Store) Device(ctx context.Context, id string) (*Device, error) {
	return one(s.devices(ctx, "device.id", id))
}

// DeviceByToken returns the device whose own token, or the one that is to replace it, has this hash; nil when there is none.
func (s *Store) DeviceByToken(ctx context.Context, hash string) (*Device, error) {
	return one(s.devices(ctx, "device.token", hash))
}

// Devices returns all devices, the last seen first.
func (s *Store) Devices(ctx context.Context) ([]*Device, error) { return s.devices(ctx, "device.list") }

// DevicesOf returns the devices of a user, revoked ones included.
func (s *Store) DevicesOf(ctx context.Context, user string) ([]*Device, error) {
	return s.devices(ctx, "device.user", user)
}

// DevicesKeeping returns the devices for which something of a user may be kept: the user's, and unbound ones that were.
func (s *Store) DevicesKeeping(ctx context.Context, user string) ([]*Device, error) {
	return s.devices(ctx, "device.keeping", user)
}

// Work returns the ids of the devices for which something is unfinished: messages that wait, messages without an end,
// cards that are not settled.
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

// AddDevice stores a new device and gives it an epoch and all rights.
func (t *Tx) AddDevice(d *Device, now time.Time) error {
	d.Epoch, d.Rights, d.CreatedAt, d.SeenAt = newEpoch(), AllRights, now, now
	_, n, err := t.exec("device.add", d.ID, d.Name, d.Platform, d.App, d.UserID, d.UserName, d.Label, d.TokenHash, d.Epoch, now.UnixMilli(), now.UnixMilli(),
		millisOrZero(d.ExpiresAt), millisOrZero(d.ApprovedAt), d.Notices)
	d.N = n
	return err
}

// SaveDevice stores what a hello may change: names, user, binding, own token, and what its app shows.
func (t *Tx) SaveDevice(d *Device, now time.Time) error {
	return t.must("device.hello", d.Name, d.Platform, d.App, d.UserID, d.UserName, d.Label, d.TokenHash, now.UnixMilli(),
		millisOrZero(d.ExpiresAt), d.NextHash, d.Rotate, millisOrZero(d.ApprovedAt), d.WasUser, d.Notices, d.N)
}

// RenameDevice changes the name for display.
func (t *Tx) RenameDevice(n int64, name string) error { return t.must("device.name", name, n) }

// SetRights changes what the owner lets a device do.
func (t *Tx) SetRights(n int64, r Rights) error {
	return t.must("device.rights", r.Write, r.Answer, r.Call, n)
}

// UnbindDevice forgets the token a device is bound to, its user, its own token, its pairing, where it is notified, and its revocation.
// What waits for it stays its user's (WasUser).
func (t *Tx) UnbindDevice(n int64) error {
	if err := t.ForgetInvites(n); err != nil {
		return err
	}
	if err := t.ForgetPush(n); err != nil {
		return err
	}
	return t.must("device.unbind", n)
}

// RevokeDevice refuses a device from now on and drops its own token and its pairing.
func (t *Tx) RevokeDevice(n int64) error {
	if err := t.ForgetInvites(n); err != nil {
		return err
	}
	return t.must("device.revoke", n)
}

// RotateToken marks a device's own token for replacement at its next hello, and sets when the new one expires; zero means never.
func (t *Tx) RotateToken(n int64, expires time.Time) error {
	return t.must("device.rotate", millisOrZero(expires), n)
}

// RenewToken makes the replacement token with this hash the device's only one.
func (t *Tx) RenewToken(n int64, hash string) error { return t.must("device.renew", n, hash) }

// WipeDevice drops everything kept for a device and begins a new epoch of its outbox after seq.
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

// Sent notes the newest seq that a connection was sent.
func (t *Tx) Sent(n, seq int64, now time.Time) error {
	return t.must("device.sent", seq, now.UnixMilli(), n)
}

func newEpoch() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
