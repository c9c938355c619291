package hub

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Bounds of what the holder of an app token can make the server store for ever.
const (
	maxUserDevices = 100 // of one user that are not revoked
	maxUnapproved  = 100 // devices with one app token whose user was never approved
)

// user returns the user that a hello comes as.
func (e *evHello) user() string {
	switch {
	case e.f.User.ID != "":
		return e.f.User.ID
	case e.code != nil && e.code.User != "":
		return e.code.User
	case e.d.dev != nil && e.d.dev.UserID != "" && e.grant.own: // that it was paired for
		return e.d.dev.UserID
	}
	return e.f.Device.ID
}

// again reports whether the device was paired with this code already, and comes again because the
// answer was lost.
func (e *evHello) again() bool { return e.code != nil && e.code.Device != "" }

// refusal returns why the hello is rejected, nil if it is not.
func (e *evHello) refusal() *frame.Error {
	h := e.d.hub
	refusal := e.foreignDevice()
	if refusal == nil && e.code != nil {
		refusal = e.foreignCode()
	} else if refusal == nil {
		refusal = e.foreignUser()
	}
	switch {
	case refusal != nil:
		return refusal
	case h.AllowedDevices.Set() && !h.AllowedDevices.Has(e.d.id):
		return &frame.Error{Code: frame.AuthFailed, Message: "this device is not on the owner's list MOBILE_ALLOWED_DEVICES"}
	case h.AllowedUsers.Set() && e.code == nil && !h.approved(e.user()):
		return &frame.Error{Code: frame.AuthFailed, Message: "this user is neither on the owner's list MOBILE_ALLOWED_USERS nor approved"}
	}
	if e.d.out.conn != nil {
		if after, ok := h.replaced.Allow(e.d.id); !ok {
			return &frame.Error{Code: frame.RateLimited, Message: "this device replaced its own connection too often: wait before the next try", RetryAfter: seconds(after)}
		}
	}
	return nil
}

// foreignDevice returns why the client is not the device that it names, or why that may not
// connect.
func (e *evHello) foreignDevice() *frame.Error {
	d := e.d.dev
	if d == nil {
		return nil
	}
	own := e.grant.own && e.code == nil
	switch {
	case d.Revoked:
		return &frame.Error{Code: frame.AuthFailed, Message: "this device was revoked"}
	case own && d.TokenHash != e.grant.hash && d.NextHash != e.grant.hash: // since the token was looked up
		return &frame.Error{Code: frame.AuthFailed, Message: "this token was replaced by a newer one: use that, or pair the device again"}
	case own && d.Expired(time.Now()):
		return tokenExpired()
	case !d.Bound():
		return e.unbound()
	case d.Label != e.grant.label:
		return &frame.Error{Code: frame.Forbidden, Message: "this device id is bound to another token: choose another id, or have the owner run hermes-mobile devices unbind"}
	case e.code != nil && !e.again() && !(d.Expired(time.Now()) && e.code.User == d.UserID):
		return &frame.Error{Code: frame.Forbidden, Message: "this device id is paired already: choose another id, or have the owner run hermes-mobile devices unbind"}
	}
	return nil
}

// unbound returns why an unbound device may not return with this hello, or nil if it may. Its outbox
// and the agent's memory of its conversation belong to its former user. Only the owner can give its
// id to somebody else, with a code that names the user.
func (e *evHello) unbound() *frame.Error {
	was := e.d.dev.WasUser
	if was == "" || e.user() == was || e.code != nil && e.code.User != "" {
		return nil
	}
	return &frame.Error{Code: frame.Forbidden, Message: "this device id was another user's: choose another id, or have the owner make a code that names the user with hermes-mobile pair --user"}
}

func tokenExpired() *frame.Error {
	return &frame.Error{Code: frame.AuthFailed, Message: "the token of this device has expired: have the owner make a pairing code for its user with hermes-mobile pair --user"}
}

// foreignCode returns why a pairing code is not for the user who comes with it.
func (e *evHello) foreignCode() *frame.Error {
	h, user := e.d.hub, e.user()
	switch {
	case e.code.User != "" && e.code.User != user:
		return &frame.Error{Code: frame.Forbidden, Message: "this pairing code is for another user: leave user.id out, or have the owner make a code for this user with hermes-mobile pair --user"}
	case e.again() && e.d.dev != nil && e.d.dev.UserID == user:
		return nil
	case h.Pairing.Check() != nil: // who is approved can't be read, and nobody could be approved
		return &frame.Error{Code: frame.Internal, Message: "the server can't read its pairing files: try again later, the server's log says why"}
	case e.code.User != "":
		return nil
	}
	known, err := e.userKnown(user)
	switch {
	case err != nil:
		h.storeFailed("look up a user", err)
		return storeDown("")
	case known:
		h.Guard.Wrong(e.grant.addr) // or a code would tell which users there are
		return userExists(user)
	}
	return nil
}

func userExists(user string) *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: fmt.Sprintf("user %s exists already and this pairing code is for a new one: choose another user.id, or have the owner run hermes-mobile pair --user %s", user, user)}
}

// userKnown reports whether a user exists: a device, an approval, an API user or the settings name
// it, or the id of a new device.
func (e *evHello) userKnown(user string) (bool, error) {
	h := e.d.hub
	if h.Pairing.Approved(user) || h.AllowedUsers.Has(user) || h.Named.Has("user:"+user) || e.d.dev == nil && h.Named.Has(e.d.id) {
		return true, nil
	}
	return h.store.UserKnown(h.ctx, user)
}

// foreignUser returns why a device may not become this user's with its token. A device keeps its
// user. Another user must be unknown or, with an app token, have devices with that token.
func (e *evHello) foreignUser() *frame.Error {
	h, user := e.d.hub, e.user()
	if e.d.dev != nil && e.d.dev.UserID == user {
		return nil
	}
	if e.grant.own {
		known, err := e.userKnown(user)
		switch {
		case err != nil:
			h.storeFailed("look up a user", err)
			return storeDown("")
		case known:
			return userTaken()
		}
		return nil
	}
	list, err := h.store.DevicesOf(h.ctx, user)
	if err != nil {
		h.storeFailed("look up a user", err)
		return storeDown("")
	}
	if len(list) > 0 && !slices.ContainsFunc(list, func(d *store.Device) bool { return d.Label == e.grant.label }) {
		return userTaken()
	}
	return nil
}

func userTaken() *frame.Error {
	return &frame.Error{Code: frame.Forbidden, Message: "this user id belongs to devices with another token: choose another user.id, or have the owner pair this device with hermes-mobile pair --user"}
}

// conflict returns the error for a device that was refused by the store, nil if err is another
// error.
func (e *evHello) conflict(err error) *frame.Error {
	switch {
	case errors.Is(err, errCodeGone):
		return &frame.Error{Code: frame.AuthFailed, Message: badCode}
	case errors.Is(err, store.ErrUserTaken) && e.code != nil:
		return &frame.Error{Code: frame.Forbidden, Message: "the user of this code is not approved, and devices that nobody approved wait under that name: have the owner approve or revoke them, and make another code"}
	case errors.Is(err, store.ErrUserTaken):
		return userTaken()
	case errors.Is(err, store.ErrManyDevices):
		return &frame.Error{Code: frame.Forbidden, Message: fmt.Sprintf("the user has %d devices, which is the limit: have the owner revoke one that is no longer used, or pair this one with hermes-mobile pair --user", maxUserDevices)}
	case errors.Is(err, store.ErrManyUnapproved):
		return &frame.Error{Code: frame.Forbidden, Message: fmt.Sprintf("%d devices with this token wait for approval, which is the limit: have the owner approve or revoke some, or pair this one with a code", maxUnapproved)}
	}
	return nil
}

// reject closes a connection that is not admitted.
func (e *evHello) reject(refusal *frame.Error) {
	e.d.hub.noteRejected(e.d.id, e.grant.addr, refusal)
	code := frame.CloseNoAccess
	if refusal.Code.Retry() {
		code = frame.CloseTryLater
	}
	e.c.reject(refusal, code)
}

const badCode = "the pairing code is wrong, used or too old: make a new one with hermes-mobile pair"

// wrongCode rejects a connection whose pairing code is not valid, and counts it as a guess.
func (e *evHello) wrongCode() {
	e.d.hub.Guard.Wrong(e.grant.addr)
	e.reject(&frame.Error{Code: frame.AuthFailed, Message: badCode})
}

// enter stores that the device belongs to its user.
func (e *evHello) enter(tx *store.Tx, n *entrance, now time.Time) error {
	h, d := e.d.hub, &n.dev
	var err error
	switch {
	case e.code == nil:
		if err = tx.ClaimUser(d.N, d.UserID, d.Label); err == nil {
			err = tx.FewDevices(d.N, d.UserID, maxUserDevices)
		}
	case e.code.User != "" && !h.approved(d.UserID): // other devices that wait under this name would be approved with it
		err = tx.SoleDevice(d.N, d.UserID)
	}
	if err == nil && d.ApprovedAt.IsZero() && !e.grant.own {
		err = tx.FewUnapproved(d.N, d.Label, maxUnapproved)
	}
	if err == nil {
		var answers time.Time
		if h.AnswerWait > 0 && (e.code == nil || !e.code.Trusted) {
			answers = now.Add(h.AnswerWait)
		}
		err = tx.EnterUser(d.N, d.UserID, now, answers)
	}
	if err == nil {
		err = h.announce(tx, noticeOf(d, frame.DeviceAdded, now), d.N)
	}
	if err != nil {
		return err
	}
	by, action, detail := audit.By{Actor: audit.ActorDevice(d.ID), Origin: e.grant.addr.String()}, "device.added", fmt.Sprintf("user %s, token %s", d.UserID, d.Label)
	if e.code != nil {
		by.Actor, action, detail = audit.ActorCode, "device.paired", fmt.Sprintf("user %s, code for %s", d.UserID, codeFor(e.code))
	}
	return tx.AddAudit(entryOf(by, action, d.ID, detail))
}

// codeFor describes what a code was made for.
func codeFor(c *store.PairingCode) string {
	words := "a new user"
	if c.User != "" {
		words = "this user"
	}
	if c.Trusted {
		words += ", trusted"
	}
	return words
}

// entered is called when it is stored that the device belongs to its user.
func (e *evHello) entered(n *entrance) {
	h, d := e.d.hub, &n.dev
	e.d.probation.reload()
	h.tell(d.UserID, d.ID)
	if e.code == nil {
		h.log.Info("device added", "device", d.ID, "user", d.UserID, "token", d.Label, "addr", e.grant.addr)
		return
	}
	h.log.Info("device paired", "device", d.ID, "name", d.Name, "user", d.UserID, "addr", e.grant.addr, "new_user", e.code.User == "", "trusted", e.code.Trusted)
	h.redeemed.Add(access.Paired{Code: access.CodeName(e.code.Hash), ID: d.ID, Name: d.Name, User: d.UserID, At: time.Now().UTC().Truncate(time.Second)})
}
