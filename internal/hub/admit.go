package hub

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Bounds of what the holder of an app token may make the server keep for ever.
const (
	maxUserDevices = 100 // of one user that are not revoked
	maxUnapproved  = 100 // devices with one app token whose user was never approved
)

// user says as which user a hello comes.
func (e *helloed) user(s *session) string {
	switch {
	case e.f.User.ID != "":
		return e.f.User.ID
	case e.code != nil && e.code.User != "":
		return e.code.User
	case s.dev != nil && s.dev.UserID != "" && e.grant.own: // whom it was paired for
		return s.dev.UserID
	}
	return e.f.Device.ID
}

// again reports whether the device was paired by this code already, and comes again since the answer was lost.
func (e *helloed) again() bool { return e.code != nil && e.code.Device != "" }

// refusal says why this hello is turned away, nil if it is not.
func (e *helloed) refusal(s *session) *frame.Error {
	h := s.hub
	refusal := e.foreignDevice(s)
	if refusal == nil && e.code != nil {
		refusal = e.foreignCode(s)
	} else if refusal == nil {
		refusal = e.foreignUser(s)
	}
	switch {
	case refusal != nil:
		return refusal
	case h.AllowedDevices.Set() && !h.AllowedDevices.Has(s.id):
		return &frame.Error{Code: frame.AuthFailed, Message: "this device is not on the owner's list MOBILE_ALLOWED_DEVICES"}
	case h.AllowedUsers.Set() && e.code == nil && !h.approved(e.user(s)):
		return &frame.Error{Code: frame.AuthFailed, Message: "this user is neither on the owner's list MOBILE_ALLOWED_USERS nor approved"}
	}
	if s.conn != nil {
		if after, ok := h.replaced.Allow(s.id); !ok {
			return &frame.Error{Code: frame.RateLimited, Message: "this device replaced its own connection too often: wait before the next try", RetryAfter: seconds(after)}
		}
	}
	return nil
}

// foreignDevice says why the device is not the one that comes, or may not come.
func (e *helloed) foreignDevice(s *session) *frame.Error {
	d := s.dev
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
		return e.unbound(s)
	case d.Label != e.grant.label:
		return &frame.Error{Code: frame.Forbidden, Message: "this device id is bound to another token: choose another id, or have the owner run hermes-mobile devices unbind"}
	case e.code != nil && !e.again() && !(d.Expired(time.Now()) && e.code.User == d.UserID):
		return &frame.Error{Code: frame.Forbidden, Message: "this device id is paired already: choose another id, or have the owner run hermes-mobile devices unbind"}
	}
	return nil
}

// unbound says why a device that was unbound may not come back like this: what waits for it, and what the agent remembers of its
// conversation, is that of the user whom it had. Only the owner gives its id to somebody else, by a code that names the user.
func (e *helloed) unbound(s *session) *frame.Error {
	was := s.dev.WasUser
	if was == "" || e.user(s) == was || e.code != nil && e.code.User != "" {
		return nil
	}
	return &frame.Error{Code: frame.Forbidden, Message: "this device id was another user's: choose another id, or have the owner make a code that names the user with hermes-mobile pair --user"}
}

func tokenExpired() *frame.Error {
	return &frame.Error{Code: frame.AuthFailed, Message: "the token of this device has expired: have the owner make a pairing code for its user with hermes-mobile pair --user"}
}

// foreignCode says why a pairing code is not for the user who comes with it.
func (e *helloed) foreignCode(s *session) *frame.Error {
	h, user := s.hub, e.user(s)
	switch {
	case e.code.User != "" && e.code.User != user:
		return &frame.Error{Code: frame.Forbidden, Message: "this pairing code is for another user: leave user.id out, or have the owner make a code for this user with hermes-mobile pair --user"}
	case e.again() && s.dev != nil && s.dev.UserID == user:
		return nil
	case h.Pairing.Check() != nil: // who is approved cannot be seen, and nobody could be
		return &frame.Error{Code: frame.Internal, Message: "the server cannot read its pairing files: try again later, the owner finds the reason in the log of the server"}
	case e.code.User != "":
		return nil
	}
	known, err := h.userKnown(s, user)
	switch {
	case err != nil:
		h.storeFailed("look a user up", err)
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

// userKnown reports whether a user exists: a device, an approval, an API user or the settings name it, or the id of a device
// that is new.
func (h *Hub) userKnown(s *session, user string) (bool, error) {
	if h.Pairing.Approved(user) || h.AllowedUsers.Has(user) || h.Named.Has("user:"+user) || s.dev == nil && h.Named.Has(s.id) {
		return true, nil
	}
	return h.store.UserKnown(h.ctx, user)
}

// foreignUser says why a device may not be this user's by its token. It stays that of the user whom it had. Another user must be
// one whom nobody knows or, with an app token, one who has devices with that token.
func (e *helloed) foreignUser(s *session) *frame.Error {
	h, user := s.hub, e.user(s)
	if s.dev != nil && s.dev.UserID == user {
		return nil
	}
	if e.grant.own {
		known, err := h.userKnown(s, user)
		switch {
		case err != nil:
			h.storeFailed("look a user up", err)
			return storeDown("")
		case known:
			return userTaken()
		}
		return nil
	}
	list, err := h.store.DevicesOf(h.ctx, user)
	if err != nil {
		h.storeFailed("look a user up", err)
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

// conflict is what a device is told of a reason for which it was not stored, nil where that was no such reason.
func (e *helloed) conflict(err error) *frame.Error {
	switch {
	case errors.Is(err, errCodeGone):
		return &frame.Error{Code: frame.AuthFailed, Message: badCode}
	case errors.Is(err, store.ErrUserTaken) && e.code != nil:
		return &frame.Error{Code: frame.Forbidden, Message: "the user of this code is not approved, and devices that nobody approved wait under that name: have the owner approve or revoke them, and make another code"}
	case errors.Is(err, store.ErrUserTaken):
		return userTaken()
	case errors.Is(err, store.ErrManyDevices):
		return &frame.Error{Code: frame.Forbidden, Message: fmt.Sprintf("the user has %d devices, which is the most: have the owner revoke one that is not used any more, or pair this one with hermes-mobile pair --user", maxUserDevices)}
	case errors.Is(err, store.ErrManyUnapproved):
		return &frame.Error{Code: frame.Forbidden, Message: fmt.Sprintf("%d devices with this token wait for approval, which is the most: have the owner approve or revoke some, or pair this one with a code", maxUnapproved)}
	}
	return nil
}

// turnAway ends a connection that is not let in.
func (e *helloed) turnAway(s *session, refusal *frame.Error) {
	h := s.hub
	h.noteRejected(s.id, e.grant.addr, refusal)
	h.logRejected(s.id, e.grant.addr, refusal.Code, refusal.Message)
	code := frame.CloseNoAccess
	if refusal.Code.Retry() {
		code = frame.CloseTryLater
	}
	e.c.refuse(refusal, code)
}

const badCode = "the pairing code is wrong, used or too old: make a new one with hermes-mobile pair"

// wrongCode turns a connection away whose pairing code is not valid, and counts it as a guess.
func (e *helloed) wrongCode(s *session) {
	s.hub.Guard.Wrong(e.grant.addr)
	e.turnAway(s, &frame.Error{Code: frame.AuthFailed, Message: badCode})
}

// enter makes the device its user's.
func (e *helloed) enter(tx *store.Tx, s *session, n *entrance, now time.Time) error {
	d := &n.dev
	var err error
	switch {
	case e.code == nil:
		if err = tx.ClaimUser(d.N, d.UserID, d.Label); err == nil {
			err = tx.FewDevices(d.N, d.UserID, maxUserDevices)
		}
	case e.code.User != "" && !s.hub.approved(d.UserID): // whoever else waits under this name would be approved with it
		err = tx.SoleDevice(d.N, d.UserID)
	}
	if err == nil && d.ApprovedAt.IsZero() && !e.grant.own {
		err = tx.FewUnapproved(d.N, d.Label, maxUnapproved)
	}
	if err == nil {
		var answers time.Time
		if s.hub.AnswerWait > 0 && (e.code == nil || !e.code.Trusted) {
			answers = now.Add(s.hub.AnswerWait)
		}
		err = tx.EnterUser(d.N, d.UserID, now, answers)
	}
	if err == nil {
		err = s.hub.announce(tx, noticeOf(d, frame.DeviceAdded, now), d.N)
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

// codeFor says in words what a code was made for.
func codeFor(c *store.Invite) string {
	words := "a new user"
	if c.User != "" {
		words = "this user"
	}
	if c.Trusted {
		words += ", trusted"
	}
	return words
}

// entered: the device is its user's from now on, and that is stored.
func (e *helloed) entered(s *session, n *entrance) {
	h, d := s.hub, &n.dev
	s.restrained()
	h.tell(d.UserID, d.ID)
	if e.code == nil {
		h.log.Info("device added", "device", d.ID, "user", d.UserID, "token", d.Label, "addr", e.grant.addr)
		return
	}
	h.log.Info("device paired", "device", d.ID, "name", d.Name, "user", d.UserID, "addr", e.grant.addr, "new_user", e.code.User == "", "trusted", e.code.Trusted)
	h.redeemed.Add(access.Paired{Code: access.CodeName(e.code.Hash), ID: d.ID, Name: d.Name, User: d.UserID, At: time.Now().UTC().Truncate(time.Second)})
}

// logRejected logs that a device was rejected at its hello.
func (h *Hub) logRejected(device string, addr netip.Addr, code frame.Code, reason string) {
	h.log.Warn("device rejected", "device", device, "addr", addr, "code", code, "reason", reason)
}

// noteRejected remembers a rejected device. An error of the server itself does not count.
func (h *Hub) noteRejected(device string, addr netip.Addr, e *frame.Error) {
	if e.Code != frame.Internal {
		h.rejections.Note(device, addr, string(e.Code), e.Message)
	}
}
