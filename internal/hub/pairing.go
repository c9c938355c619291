package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// A pairing code belongs to a user. The owner names one who exists, or nobody: then its device makes a user whom nobody knows.
// So whoever gets hold of a code is never somebody else. Codes are redeemed one at a time, and not while a user is revoked.

// Code is what a pairing code is made for.
type Code struct {
	User    string        // that its device belongs to; empty: a new user
	Trusted bool          // its device may answer cards at once
	Life    time.Duration // of its device's own token; 0: for ever
}

// Reasons for which no pairing code is made.
var (
	ErrBadUser = errors.New("a user id is 1 to 128 characters of A-Z a-z 0-9 . _ - : @")
	// ErrUnapprovedDevices: whoever is let in by the code would let them in as well.
	ErrUnapprovedDevices = errors.New("the user is not approved, and devices that nobody approved wait under that name: approve the user with hermes-mobile pairing approve, or revoke these devices")
)

// errCodeGone: the code that a device came with was redeemed by another one, or has ended, or its user has appeared meanwhile.
var errCodeGone = errors.New("the pairing code is not valid any more")

// Invite makes a pairing code, and returns it with its name, by which Paired knows it.
func (h *Hub) Invite(ctx context.Context, c Code, life time.Duration) (code, name string, expires time.Time, err error) {
	if c.User != "" {
		if err := h.checkInvited(ctx, c.User); err != nil {
			return "", "", time.Time{}, err
		}
	}
	code, expires = access.NewCode(), time.Now().Add(life)
	hash := access.HashSecret(code)
	by := audit.From(ctx)
	detail := "for a new user"
	if c.User != "" {
		detail = "for user " + c.User
	}
	if c.Trusted {
		detail += ", trusted"
	}
	if c.Life > 0 {
		detail += ", token for " + LifeWords(c.Life)
	}
	err = h.store.Do(func(tx *store.Tx) error {
		if err := tx.AddInvite(store.Invite{Hash: hash, Expires: expires, User: c.User, Trusted: c.Trusted, Life: c.Life}); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "pair.code", c.User, detail))
	})
	if err == nil {
		h.log.Info("pairing code made", "user", c.User, "trusted", c.Trusted, "by", by)
	}
	return code, codeName(hash), expires, err
}

// checkInvited reports why no code can be made for a user.
func (h *Hub) checkInvited(ctx context.Context, user string) error {
	if !frame.ValidID(user) {
		return fmt.Errorf("%q: %w", user, ErrBadUser)
	}
	if h.approved(user) {
		return nil
	}
	list, err := h.store.DevicesOf(ctx, user)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(d *store.Device) bool { return !d.Revoked }) {
		return fmt.Errorf("user %s: %w", user, ErrUnapprovedDevices)
	}
	return nil
}

// codeName stands for a code where it must not be shown.
func codeName(hash string) string { return hash[:16] }

// Paired is a device that has redeemed a pairing code.
type Paired struct {
	Code string    `json:"code"` // the name of the code, never the code
	ID   string    `json:"id"`   // of the device
	Name string    `json:"name"`
	User string    `json:"user"`
	At   time.Time `json:"at"`
}

// maxPaired bounds how many pairings are remembered, pairedKept for how long.
const (
	maxPaired  = 64
	pairedKept = 15 * time.Minute
)

// pairings remembers who has redeemed the codes that may still be on a screen.
type pairings struct {
	mu   sync.Mutex
	list []Paired
}

func (p *pairings) note(one Paired) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(o Paired) bool { return o.Code == one.Code || time.Since(o.At) > pairedKept })
	if p.list = append(p.list, one); len(p.list) > maxPaired {
		p.list = p.list[1:]
	}
}

// Paired returns the devices that have redeemed a code within the last minutes, oldest first.
func (h *Hub) Paired() []Paired {
	p := &h.paired
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = slices.DeleteFunc(p.list, func(o Paired) bool { return time.Since(o.At) > pairedKept })
	return append([]Paired{}, p.list...)
}

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
	user, err := h.approvals.own(func() (access.User, error) { return h.Pairing.Approve(request) })
	if err != nil {
		return user, err
	}
	h.noteApproval(audit.From(ctx), user.UserID, user.UserName)
	return user, h.UserApproved(ctx, user.UserID)
}

// SawApproval is UserApproved for an approval that was found in the pairing files, whoever wrote it.
func (h *Hub) SawApproval(ctx context.Context, user string) error {
	if !h.approvals.known(user) {
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

// approvals are those that this program wrote into the pairing files lately, which Watch reports as if they were another's.
type approvals struct {
	mu   sync.Mutex // held while one is written, so that the report does not come first
	mine map[string]time.Time
}

// reportWithin is how long after it was written an approval is reported at the latest.
const reportWithin = 10 * time.Second

// own writes an approval.
func (a *approvals) own(write func() (access.User, error)) (access.User, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	user, err := write()
	if err == nil {
		if a.mine == nil {
			a.mine = map[string]time.Time{}
		}
		a.mine[user.UserID] = time.Now()
	}
	return user, err
}

// known reports, once, whether an approval is one of this program's.
func (a *approvals) known(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, known := a.mine[user]
	delete(a.mine, user)
	for other, at := range a.mine {
		if time.Since(at) > reportWithin {
			delete(a.mine, other)
		}
	}
	return known && time.Since(at) <= reportWithin
}
