package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Invite makes a pairing code that can be redeemed for life, and returns it with the name by which
// Paired knows it.
func (o *Owner) Invite(ctx context.Context, c access.PairingCode, life time.Duration) (code, name string, expires time.Time, err error) {
	if err := c.Check(); err != nil {
		return "", "", time.Time{}, err
	}
	if c.User != "" {
		if err := o.checkInvited(ctx, c.User); err != nil {
			return "", "", time.Time{}, err
		}
	}
	code, expires = access.NewCode(), time.Now().Add(life)
	hash := access.HashSecret(code)
	by := audit.From(ctx)
	err = o.hub.store.Do(func(tx *store.Tx) error {
		if err := tx.PairingCodes().Add(store.PairingCode{Hash: hash, Expires: expires, User: c.User, Trusted: c.Trusted, Life: c.Life}); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "pair.code", c.User, c.Describe()))
	})
	if err == nil {
		o.hub.log.Info("pairing code made", "user", c.User, "trusted", c.Trusted, "by", by)
	}
	return code, access.CodeName(hash), expires, err
}

// checkInvited returns an error if no code can be made for a user.
func (o *Owner) checkInvited(ctx context.Context, user string) error {
	if o.hub.approved(user) {
		return nil
	}
	list, err := o.hub.store.DevicesOf(ctx, user)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(d *store.Device) bool { return !d.Revoked }) {
		return fmt.Errorf("user %s: %w", user, access.ErrUnapprovedDevices)
	}
	return nil
}

// Paired returns the devices that have redeemed a code within the last minutes, oldest first.
func (o *Owner) Paired() []access.Paired { return o.hub.redeemed.List() }

// RevokeUser ends the approval of a user and the codes that were made for the user, and then does
// what UserRevoked does.
func (o *Owner) RevokeUser(ctx context.Context, user string) error {
	if err := o.unapprove(ctx, user, ""); err != nil {
		return err
	}
	return o.UserRevoked(ctx, user)
}

// unapprove ends the approval of a user, and deletes the pairing codes that would approve the user
// again. It first waits until no device is redeeming a code.
func (o *Owner) unapprove(ctx context.Context, user, detail string) error {
	o.hub.admitting.Lock()
	defer o.hub.admitting.Unlock()
	if err := o.hub.Pairing.Revoke(user); err != nil {
		return err
	}
	by := audit.From(ctx)
	return o.hub.store.Do(func(tx *store.Tx) error {
		if err := tx.PairingCodes().ForgetUser(user); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "user.revoked", user, detail))
	})
}

// ApproveUser approves the user of a request, by its id or its code, and tells the user's devices.
func (o *Owner) ApproveUser(ctx context.Context, request string) (access.User, error) {
	user, err := o.hub.approvals.Write(func() (access.User, error) { return o.hub.Pairing.Approve(request) })
	if err != nil {
		return user, err
	}
	o.noteApproval(audit.From(ctx), user.UserID, user.UserName)
	return user, o.UserApproved(ctx, user.UserID)
}

// SawApproval is UserApproved for an approval that was found in the pairing files.
func (o *Owner) SawApproval(ctx context.Context, user string) error {
	if !o.hub.approvals.Own(user) {
		o.noteApproval(audit.From(ctx), user, "found in the pairing files")
	}
	return o.UserApproved(ctx, user)
}

func (o *Owner) noteApproval(by audit.By, user, detail string) {
	err := o.hub.store.Do(func(tx *store.Tx) error { return tx.AddAudit(entryOf(by, "user.approved", user, detail)) })
	if err != nil {
		o.hub.storeFailed("record an approval", err)
	}
}

// SawRevocation is UserRevoked for a revocation that was found in the pairing files.
func (o *Owner) SawRevocation(ctx context.Context, user string) error {
	by := audit.From(ctx)
	err := o.hub.store.Do(func(tx *store.Tx) error {
		if err := tx.PairingCodes().ForgetUser(user); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "user.revoked", user, "found in the pairing files"))
	})
	return errors.Join(err, o.UserRevoked(ctx, user))
}

// UserRevoked closes the connections of all devices of a user who is no longer approved, and drops
// what was stored for them.
func (o *Owner) UserRevoked(ctx context.Context, user string) error {
	list, err := o.hub.store.DevicesKeeping(ctx, user)
	if err != nil {
		return err
	}
	if o.hub.approved(user) { // let in by the settings anyway
		return nil
	}
	var errs []error
	for _, d := range list {
		errs = append(errs, o.ask(ctx, d.ID, func(d *device, b *batch, done func(error)) {
			d.wipe(b, "the agent's owner ended the access", none, done)
		}))
	}
	return errors.Join(errs...)
}

// UserApproved tells the live connections of a user that the user is approved.
func (o *Owner) UserApproved(ctx context.Context, user string) error {
	list, err := o.hub.store.DevicesOf(ctx, user)
	if err != nil {
		return err
	}
	for _, d := range list {
		o.hub.run(d.ID, (*device).tellApproved)
	}
	return nil
}

// DropUnapproved removes devices that were added before a time and whose user has not been approved
// since, so that the holder of an app token cannot fill the store. Devices that are connected, busy
// or have received deliveries stay. Revoked devices stay too: otherwise their ids could connect
// again.
func (o *Owner) DropUnapproved(ctx context.Context, before time.Time) error {
	list, err := o.hub.store.Unapproved(ctx, before)
	if err != nil {
		return err
	}
	var errs []error
	for _, dev := range list {
		if dev.Revoked {
			continue
		}
		err := o.ask(ctx, dev.ID, func(d *device, b *batch, done func(error)) { d.dropUnapproved(b, before, done) })
		if !errors.Is(err, ErrUnknownDevice) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
