package hub

import (
	"context"
	"errors"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Owner is what the agent's owner can do with devices and users. Its methods may be called
// concurrently.
type Owner struct{ hub *Hub }

// Owner returns what the agent's owner can do.
func (h *Hub) Owner() *Owner { return &Owner{h} }

// evOwnerCall: the owner wants something done with this device.
type evOwnerCall struct {
	onDevice
	f    func(*device, *batch, func(error))
	done func(error)
}

func (e *evOwnerCall) fail(err error) { e.done(err) }

func (e *evOwnerCall) apply(b *batch) {
	b.flush()
	if e.d.dev == nil {
		e.done(ErrUnknownDevice)
		return
	}
	e.f(e.d, b, e.done)
}

// ask runs f in a device's session and waits for it.
func (o *Owner) ask(ctx context.Context, id string, f func(d *device, b *batch, done func(error))) error {
	done := make(chan error, 1)
	o.hub.post(id, &evOwnerCall{f: f, done: func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// DeviceInfo describes a device to the owner.
type DeviceInfo struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Platform  string `json:"platform,omitempty"`
	App       string `json:"app,omitempty"`
	User      string `json:"user"`
	UserName  string `json:"user_name,omitempty"`
	WasUser   string `json:"was_user,omitempty"` // of an unbound device: its former user, who owns what waits for it
	Token     string `json:"token"`              // label of the token it is bound to
	Rotating  bool   `json:"rotating,omitempty"` // its own token is being replaced
	Connected bool   `json:"connected"`
	Approved  bool   `json:"approved"`
	Revoked   bool   `json:"revoked"`
	Home      bool   `json:"home"`
	// Conversation is the device whose conversation it has joined, empty for its own.
	Conversation string `json:"conversation,omitempty"`

	Rights    Rights     `json:"rights"`
	AnswersAt *time.Time `json:"answers_at,omitempty"` // when it may answer cards, if it may not yet
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // when its own token expires, or expired
	AddedAt   time.Time  `json:"added_at"`             // when it became a device of its user
	Waiting   int        `json:"waiting"`              // frames in its outbox
	SeenAt    time.Time  `json:"seen_at"`
}

// Devices lists all devices, the last seen first.
func (o *Owner) Devices(ctx context.Context) ([]DeviceInfo, error) {
	list, err := o.hub.store.Devices(ctx)
	if err != nil {
		return nil, err
	}
	live := o.hub.connected()
	out := make([]DeviceInfo, 0, len(list))
	for _, d := range list {
		waiting, _, _, err := o.hub.store.OutboxBounds(ctx, d.N)
		if err != nil {
			return nil, err
		}
		out = append(out, DeviceInfo{ID: d.ID, Name: d.Name, Platform: d.Platform, App: d.App, User: d.UserID, UserName: d.UserName, WasUser: d.WasUser, Token: d.Label,
			Connected: live[d.ID], Approved: o.hub.approved(d.UserID), Revoked: d.Revoked, Home: o.hub.isHome(d.ID), Conversation: d.Conversation, Rights: d.Rights, Waiting: waiting,
			AddedAt: d.CreatedAt.UTC().Truncate(time.Second), AnswersAt: future(d.AnswersAt), Rotating: d.Rotate, ExpiresAt: TimeOrNil(d.ExpiresAt), SeenAt: d.SeenAt.UTC().Truncate(time.Second)})
	}
	return out, nil
}

// future returns a time that is still to come, nil for others.
func future(t time.Time) *time.Time {
	if !t.After(time.Now()) {
		return nil
	}
	return TimeOrNil(t)
}

// TimeOrNil returns a time as listings show it, in UTC and to the second, and nil for the zero
// time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// Rename changes a device's name for display.
func (o *Owner) Rename(ctx context.Context, id, name string) error {
	return o.ask(ctx, id, func(d *device, b *batch, done func(error)) {
		name := frame.CleanName(name)
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RenameDevice(d.dev.N, name), tx.Record(ctx, "device.renamed", d.id, name))
		}, func(err error) {
			if err == nil {
				d.dev.Name = name
			}
			done(err)
		})
	})
}

// Unbind makes a device forget the token it is bound to, its user, its own token and its
// revocation. It closes the live connection, which may be of the wrong app. The device's outbox is
// kept for its user. If it was the user's only device, it ends the user's approval, since otherwise
// any app token could name that user.
func (o *Owner) Unbind(ctx context.Context, id string) error {
	if err := o.unapproveLast(ctx, id); err != nil {
		return err
	}
	by := audit.From(ctx)
	return o.ask(ctx, id, func(d *device, b *batch, done func(error)) {
		user := d.dev.UserID
		b.do(func(tx *store.Tx) error {
			if err := errors.Join(tx.UnbindDevice(d.dev.N), tx.Part(d.dev.N)); err != nil {
				return err
			}
			return tx.AddAudit(entryOf(by, "device.unbound", d.id, "user "+user))
		}, func(err error) {
			if err == nil {
				d.part()
				d.notes.Reset()
				dev := d.dev
				dev.Label, dev.TokenHash, dev.NextHash, dev.Rotate, dev.ExpiresAt, dev.Revoked = "", "", "", false, time.Time{}, false
				dev.UserID, dev.UserName, dev.WasUser = "", "", dev.Owner()
				d.disconnect(frame.CloseTryLater, "this device was unbound")
			}
			done(err)
		})
	})
}

// unapproveLast ends the approval of a device's user if the user has no other device.
func (o *Owner) unapproveLast(ctx context.Context, id string) error {
	d, err := o.hub.store.Device(ctx, id)
	if err != nil || d == nil || d.UserID == "" || !o.hub.Pairing.Approved(d.UserID) {
		return err
	}
	list, err := o.hub.store.DevicesOf(ctx, d.UserID)
	if err != nil || len(list) > 1 {
		return err
	}
	err = o.unapprove(ctx, d.UserID, "the only device was unbound: "+id)
	if errors.Is(err, access.ErrNotApproved) {
		err = nil // it was ended meanwhile
	}
	return err
}

// Revoke closes a device's connection at once, drops its uploads, its outbox and its own token, and
// rejects its id until Unbind. The approval of its user stays.
func (o *Owner) Revoke(ctx context.Context, id string) error {
	by := audit.From(ctx)
	return o.ask(ctx, id, func(d *device, b *batch, done func(error)) { d.revoke(b, by, done) })
}
