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

// ErrUnknownDevice: no device has this id.
var ErrUnknownDevice = errors.New("no device has this id: hermes-mobile devices list shows those there are")

// DeviceInfo is a device as its owner sees it.
type DeviceInfo struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Platform  string `json:"platform,omitempty"`
	App       string `json:"app,omitempty"`
	User      string `json:"user"`
	UserName  string `json:"user_name,omitempty"`
	WasUser   string `json:"was_user,omitempty"` // of an unbound device: whose is what waits for it
	Token     string `json:"token"`              // label of the token it is bound to
	Rotating  bool   `json:"rotating,omitempty"` // its own token is being replaced
	Connected bool   `json:"connected"`
	Approved  bool   `json:"approved"`
	Revoked   bool   `json:"revoked"`
	Home      bool   `json:"home"`
	// Conversation is the device whose conversation it has joined, empty for its own.
	Conversation string `json:"conversation,omitempty"`

	Rights    Rights     `json:"rights"`
	AnswersAt *time.Time `json:"answers_at,omitempty"` // when it may answer cards, where it may not yet
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // when its own token ends, or ended
	AddedAt   time.Time  `json:"added_at"`             // since when it is a device of its user
	Waiting   int        `json:"waiting"`              // frames in its outbox
	SeenAt    time.Time  `json:"seen_at"`
}

// Devices lists all devices, the last seen first.
func (h *Hub) Devices(ctx context.Context) ([]DeviceInfo, error) {
	list, err := h.store.Devices(ctx)
	if err != nil {
		return nil, err
	}
	live := h.live()
	out := make([]DeviceInfo, 0, len(list))
	for _, d := range list {
		waiting, _, _, err := h.store.OutboxBounds(ctx, d.N)
		if err != nil {
			return nil, err
		}
		out = append(out, DeviceInfo{ID: d.ID, Name: d.Name, Platform: d.Platform, App: d.App, User: d.UserID, UserName: d.UserName, WasUser: d.WasUser, Token: d.Label,
			Connected: live[d.ID], Approved: h.approved(d.UserID), Revoked: d.Revoked, Home: h.isHome(d.ID), Conversation: d.Conversation, Rights: d.Rights, Waiting: waiting,
			AddedAt: d.CreatedAt.UTC().Truncate(time.Second), AnswersAt: future(d.AnswersAt), Rotating: d.Rotate, ExpiresAt: TimeOrNil(d.ExpiresAt), SeenAt: d.SeenAt.UTC().Truncate(time.Second)})
	}
	return out, nil
}

// future is a time that is still to come, nil for others.
func future(t time.Time) *time.Time {
	if !t.After(time.Now()) {
		return nil
	}
	return TimeOrNil(t)
}

// TimeOrNil is a time as listings show it, in UTC and to the second; nil for the zero time.
func TimeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Second)
	return &t
}

// live returns the ids of the devices that are connected.
func (h *Hub) live() map[string]bool {
	live := map[string]bool{}
	for _, c := range h.conns.list() {
		if s := c.liveSession.Load(); s != nil {
			live[s.id] = true
		}
	}
	return live
}

// Connections returns the number of open connections.
func (h *Hub) Connections() int { return h.conns.count() }

// Rename changes a device's name for display.
func (h *Hub) Rename(ctx context.Context, id, name string) error {
	return h.ask(ctx, id, func(s *session, b *batch, done func(error)) {
		name := frame.CleanName(name)
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RenameDevice(s.dev.N, name), tx.Record(ctx, "device.renamed", s.id, name))
		}, func(err error) {
			if err == nil {
				s.dev.Name = name
			}
			done(err)
		})
	})
}

// Unbind makes a device forget the token it is bound to, its user, its own token and its revocation; a live connection of it is
// ended, since it may be of the wrong app. What waits for it is kept for the user. A user of whom it was the only device is not
// approved any more: else any app token could come as that user.
func (h *Hub) Unbind(ctx context.Context, id string) error {
	if err := h.unapproveLast(ctx, id); err != nil {
		return err
	}
	by := audit.From(ctx)
	return h.ask(ctx, id, func(s *session, b *batch, done func(error)) {
		user := s.dev.UserID
		b.do(func(tx *store.Tx) error {
			if err := errors.Join(tx.UnbindDevice(s.dev.N), tx.Part(s.dev.N)); err != nil {
				return err
			}
			return tx.AddAudit(entryOf(by, "device.unbound", s.id, "user "+user))
		}, func(err error) {
			if err == nil {
				s.parted()
				s.notes.Reset()
				d := s.dev
				d.Label, d.TokenHash, d.NextHash, d.Rotate, d.ExpiresAt, d.Revoked = "", "", "", false, time.Time{}, false
				d.UserID, d.UserName, d.WasUser = "", "", d.Owner()
				s.disconnect(frame.CloseTryLater, "this device was unbound")
			}
			done(err)
		})
	})
}

// unapproveLast takes the approval of a device's user away where the user has no other device.
func (h *Hub) unapproveLast(ctx context.Context, id string) error {
	d, err := h.store.Device(ctx, id)
	if err != nil || d == nil || d.UserID == "" || !h.Pairing.Approved(d.UserID) {
		return err
	}
	list, err := h.store.DevicesOf(ctx, d.UserID)
	if err != nil || len(list) > 1 {
		return err
	}
	err = h.unapprove(ctx, d.UserID, "the only device was unbound: "+id)
	if errors.Is(err, access.ErrNotApproved) {
		err = nil // by somebody else meanwhile
	}
	return err
}

// Revoke ends a device's connection at once, drops its uploads, its outbox and its own token, and refuses its id until
// Unbind. The approval of its user stays.
func (h *Hub) Revoke(ctx context.Context, id string) error {
	by := audit.From(ctx)
	return h.ask(ctx, id, func(s *session, b *batch, done func(error)) { s.revoke(b, by, done) })
}

func (s *session) revoke(b *batch, by audit.By, done func(error)) {
	user := s.dev.Owner()
	s.wipe(b, "this device was revoked", func(tx *store.Tx) error {
		if err := tx.RevokeDevice(s.dev.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.revoked", s.id, "user "+user))
	}, func(err error) {
		if err == nil {
			s.dev.TokenHash, s.dev.NextHash, s.dev.Rotate, s.dev.Revoked = "", "", false, true
			s.hub.log.Info("device revoked", "device", s.id, "user", user, "by", by)
		}
		done(err)
	})
}

// UserRevoked ends the connections of all devices of a user who is no longer approved, and drops what was kept for them.
func (h *Hub) UserRevoked(ctx context.Context, user string) error {
	list, err := h.store.DevicesKeeping(ctx, user)
	if err != nil {
		return err
	}
	if h.approved(user) { // let in by the settings anyway
		return nil
	}
	var errs []error
	for _, d := range list {
		errs = append(errs, h.ask(ctx, d.ID, func(s *session, b *batch, done func(error)) {
			s.wipe(b, "the agent's owner took the access away", none, done)
		}))
	}
	return errors.Join(errs...)
}

// UserApproved tells the live connections of a user that it may talk now.
func (h *Hub) UserApproved(ctx context.Context, user string) error {
	list, err := h.store.DevicesOf(ctx, user)
	if err != nil {
		return err
	}
	for _, d := range list {
		h.post(d.ID, approvedNow{})
	}
	return nil
}

// approvedNow: the device's user was approved.
type approvedNow struct{}

func (approvedNow) apply(s *session, b *batch) {
	b.then(func() {
		if s.conn != nil && !s.conn.welcome {
			s.conn.welcome = true
			s.conn.send(&frame.Approved{})
		}
	})
}

// TokensChanged ends the connections whose token is no longer accepted, or for another device only. accepted holds the TokenSum of
// each that is.
func (h *Hub) TokensChanged(accepted map[uint64]access.Token) {
	for _, c := range h.conns.list() {
		sum := c.token.Load()
		if sum == 0 {
			continue
		}
		switch t, ok := accepted[sum]; {
		case !ok:
			c.end(frame.CloseNoAccess, "the token was removed")
		case !t.For(c.claimed):
			c.end(frame.CloseNoAccess, "the token was bound to another device")
		}
	}
}

// disconnect ends the live connection.
func (s *session) disconnect(code frame.CloseCode, reason string) {
	if c := s.conn; c != nil {
		s.detach()
		c.end(code, reason)
	}
}

// wipe drops everything that is kept for the device, and ends its connection with a reason. op is stored along with that.
func (s *session) wipe(b *batch, why string, op func(*store.Tx) error, done func(error)) {
	var epoch string
	seq := s.seq
	s.deliveriesSent() // or those would expire
	b.do(func(tx *store.Tx) (err error) {
		if err := errors.Join(tx.Part(s.dev.N), tx.ForgetInvites(s.dev.N)); err != nil {
			return err
		}
		if epoch, err = tx.WipeDevice(s.dev.N, seq, time.Now()); err != nil {
			return err
		}
		return op(tx)
	}, func(err error) {
		if err != nil {
			done(err)
			return
		}
		s.hub.log.Info("what was kept for a device was dropped", "device", s.id)
		s.parted()
		s.disconnect(frame.CloseNoAccess, why)
		s.wiped(epoch, seq)
		done(nil)
	})
}

// wiped makes the session forget what was dropped: its outbox begins anew after seq.
func (s *session) wiped(epoch string, seq int64) {
	running := s.turn != nil
	for _, k := range s.cards {
		stop(&k.timer)
	}
	s.notes.Reset()
	s.unseen = nil
	s.waitsNoMore()
	s.waiting, s.aside, s.streams, s.cards, s.turn = nil, nil, nil, nil, nil
	s.timers.stop()
	s.typing, s.avatar = false, avatarIdle
	s.dev.Epoch, s.dev.Floor, s.dev.Sent, s.count, s.held = epoch, seq, seq, 0, heldBytes{}
	if running {
		s.hub.Agent.Stop(s.id)
	}
}

// ask runs f in a device's session and waits for it.
func (h *Hub) ask(ctx context.Context, id string, f func(s *session, b *batch, done func(error))) error {
	done := make(chan error, 1)
	h.post(id, &asked{f: f, done: func(err error) { done <- err }})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// asked: the owner wants something done with this device.
type asked struct {
	f    func(*session, *batch, func(error))
	done func(error)
}

func (e *asked) fail(_ *session, err error) { e.done(err) }

func (e *asked) apply(s *session, b *batch) {
	b.flush()
	if s.dev == nil {
		e.done(ErrUnknownDevice)
		return
	}
	e.f(s, b, e.done)
}
