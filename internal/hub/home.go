package hub

import (
	"context"
	"errors"

	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Errors of SetHome.
var (
	ErrRevoked     = errors.New("this device was revoked: let it in again with hermes-mobile devices unbind")
	ErrNotApproved = errors.New("nobody has approved this device's user yet: see hermes-mobile pairing list")
)

// Home returns the device that is the home channel, nil when none is. Where the device is not known any more, only its id is.
func (h *Hub) Home(ctx context.Context) (*DeviceInfo, error) {
	id := *h.home.Load()
	if id == "" {
		return nil, nil
	}
	list, err := h.Devices(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if d.ID == id {
			return &d, nil
		}
	}
	return &DeviceInfo{ID: id, Home: true}, nil
}

// SetHome makes a device the home channel, as its own /sethome does.
func (h *Hub) SetHome(ctx context.Context, id string) error {
	return h.ask(ctx, id, func(s *session, b *batch, done func(error)) {
		switch {
		case s.dev.Revoked:
			done(ErrRevoked)
		case !h.approved(s.dev.UserID):
			done(ErrNotApproved)
		default:
			s.makeHome(ctx, b, done)
		}
	})
}

// ClearHome leaves no device as the home channel.
func (h *Hub) ClearHome(ctx context.Context) error {
	none := ""
	err := h.store.Do(func(tx *store.Tx) error {
		return errors.Join(tx.SetMeta(metaHome, []byte{}), tx.Record(ctx, "home.cleared", "", ""))
	})
	if err == nil {
		h.home.Store(&none)
	}
	return err
}

// makeHome makes the device the home channel, for whoever the context names.
func (s *session) makeHome(ctx context.Context, b *batch, done func(error)) {
	id := s.id
	b.do(func(tx *store.Tx) error {
		return errors.Join(tx.SetMeta(metaHome, []byte(id)), tx.Record(ctx, "home.set", id, ""))
	}, func(err error) {
		if err == nil {
			s.hub.home.Store(&id)
		}
		if done != nil {
			done(err)
		}
	})
}

// acts says that the device acts, from where it is connected.
func (s *session) acts() context.Context {
	by := audit.By{Actor: audit.ActorDevice(s.id)}
	if s.conn != nil {
		by.Origin = s.conn.addr.String()
	}
	return audit.With(context.Background(), by)
}
