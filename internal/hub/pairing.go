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

// Codes are redeemed one at a time, and not while a user is revoked.

// errCodeGone: the code that a device came with was redeemed by another one, or has ended, or its user has appeared meanwhile.
var errCodeGone = errors.New("the pairing code is not valid any more")

// Invite makes a pairing code, and returns it with its name, by which Paired knows it.
func (h *Hub) Invite(ctx context.Context, c access.PairingCode, life time.Duration) (code, name string, expires time.Time, err error) {
	if err := c.Check(); err != nil {
		return "", "", time.Time{}, err
	}
	if c.User != "" {
		if err := h.checkInvited(ctx, c.User); err != nil {
			return "", "", time.Time{}, err
		}
	}
	code, expires = access.NewCode(), time.Now().Add(life)
	hash := access.HashSecret(code)
	by := audit.From(ctx)
	err = h.store.Do(func(tx *store.Tx) error {
		if err := tx.AddInvite(store.Invite{Hash: hash, Expires: expires, User: c.User, Trusted: c.Trusted, Life: c.Life}); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "pair.code", c.User, c.Describe()))
	})
	if err == nil {
		h.log.Info("pairing code made", "user", c.User, "trusted", c.Trusted, "by", by)
	}
	return code, access.CodeName(hash), expires, err
}

// checkInvited reports why no code can be made for a user.
func (h *Hub) checkInvited(ctx context.Context, user string) error {
	if h.approved(user) {
		return nil
	}
	list, err := h.store.DevicesOf(ctx, user)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(d *store.Device) bool { return !d.Revoked }) {
		return fmt.Errorf("user %s: %w", user, access.ErrUnapprovedDevices)
	}
	return nil
}

// Paired returns the devices that have redeemed a code within the last minutes, oldest first.
func (h *Hub) Paired() []access.Paired { return h.redeemed.List() }

// RevokeUser takes the approval of a user away: the codes that were made for the user end, and UserRevoked is carried out.
func (h *Hub) RevokeUser(ctx context.Context, user string) error {
	if err := h.unapprove(ctx, user, ""); err != nil {
		return err
	}
	return h.UserRevoked(ctx, user)
}

// unapprove takes the approval of a user away, and ends the codes by which it could come back.
func (h *Hub) unapprove(ctx context.Context, user, detail string) error {
	h.admitting.Lock()
	defer h.admitting.Unlock()
	if err := h.Pairing.Revoke(user); err != nil {
		return err
	}
	by := audit.From(ctx)
	return h.store.Do(func(tx *store.Tx) error {
		if err := tx.ForgetInvitesFor(user); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "user.revoked", user, detail))
	})
}

// ApproveUser approves the user of a request, by its id or its code, and tells the user's devices.
func (h *Hub) ApproveUser(ctx context.Context, request string) (access.User, error) {
	user, err := h.approvals.Write(func() (access.User, error) { return h.Pairing.Approve(request) })
	if err != nil {
		return user, err
	}
	h.noteApproval(audit.From(ctx), user.UserID, user.UserName)
	return user, h.UserApproved(ctx, user.UserID)
}

// SawApproval is UserApproved for an approval that was found in the pairing files, whoever wrote it.
func (h *Hub) SawApproval(ctx context.Context, user string) error {
	if !h.approvals.Own(user) {
		h.noteApproval(audit.From(ctx), user, "found in the pairing files")
	}
	return h.UserApproved(ctx, user)
}

func (h *Hub) noteApproval(by audit.By, user, detail string) {
	err := h.store.Do(func(tx *store.Tx) error { return tx.AddAudit(entryOf(by, "user.approved", user, detail)) })
	if err != nil {
		h.storeFailed("record an approval", err)
	}
}

// SawRevocation is UserRevoked for a revocation that was found in the pairing files.
func (h *Hub) SawRevocation(ctx context.Context, user string) error {
	by := audit.From(ctx)
	err := h.store.Do(func(tx *store.Tx) error {
		if err := tx.ForgetInvitesFor(user); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "user.revoked", user, "found in the pairing files"))
	})
	return errors.Join(err, h.UserRevoked(ctx, user))
}

// entryOf is an entry of the audit log.
func entryOf(by audit.By, action, subject, detail string) store.AuditEntry {
	return store.AuditEntry{Actor: by.Actor, Origin: by.Origin, Action: action, Subject: subject, Detail: detail}
}
