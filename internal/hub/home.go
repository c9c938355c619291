package hub

import (
	"context"
	"errors"

	"hermes-mobile/internal/store"
)

// Errors of SetHome.
var (
	ErrRevoked     = errors.New("this device was revoked: let it in again with hermes-mobile devices unbind")
	ErrNotApproved = errors.New("nobody has approved this device's user yet: see hermes-mobile pairing list")
)

// Home returns the device that is the home channel, nil if there is none. Of a device that is no longer known it returns
// only the id.
func (o *Owner) Home(ctx context.Context) (*DeviceInfo, error) {
	id := *o.hub.home.Load()
	if id == "" {
		return nil, nil
	}
	list, err := o.Devices(ctx)
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
func (o *Owner) SetHome(ctx context.Context, id string) error {
	return o.ask(ctx, id, func(d *device, b *batch, done func(error)) {
		switch {
		case d.dev.Revoked:
			done(ErrRevoked)
		case !d.dev.Bound() || !o.hub.approved(d.dev.UserID):
			done(ErrNotApproved)
		default:
			d.makeHome(ctx, b, done)
		}
	})
}

// ClearHome makes no device the home channel.
func (o *Owner) ClearHome(ctx context.Context) error {
	none := ""
	err := o.hub.store.Do(func(tx *store.Tx) error {
		return errors.Join(tx.SetMeta(metaHome, []byte{}), tx.Record(ctx, "home.cleared", "", ""))
	})
	if err == nil {
		o.hub.home.Store(&none)
	}
	return err
}
