package hub

import (
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/store"
)

// helloed: a connection said hello for this device with a valid token, or with a one-time code.
type helloed struct {
	c     *conn
	f     *frame.Hello
	grant grant
	again bool // with the code that this device was paired by, since the answer was lost
}

func (e *helloed) fail(_ *session, _ error) { e.c.refuse(storeDown(""), frame.CloseTryLater) }

func storeDown(ref string) *frame.Error {
	return &frame.Error{Code: frame.Internal, Message: "the server cannot use its store now, nothing was taken: try again later", Ref: ref}
}

func (e *helloed) apply(s *session, b *batch) {
	s.flush(b)
	h, f := s.hub, e.f
	now := time.Now()
	if e.grant.pair != "" {
		valid, again, err := h.store.Invited(h.ctx, e.grant.pair, s.id, now)
		if err != nil {
			h.storeFailed("look a pairing code up", err)
			e.fail(s, err)
			return
		}
		e.again = again
		if !valid {
			e.wrongCode(s)
			return
		}
	}
	if refusal := e.refusal(s); refusal != nil {
		h.noteRefused(s.id, e.grant.addr, refusal)
		h.logRefused(s.id, e.grant.addr, refusal.Code, refusal.Message)
		code := frame.CloseNoAccess
		if refusal.Code.Retry() {
			code = frame.CloseTryLater
		}
		b.then(func() { e.c.refuse(refusal, code) })
		return
	}
	next := store.Device{ID: s.id}
	if s.dev != nil {
		next = *s.dev
	}
	next.Name, next.Platform, next.App = f.Device.Name, f.Device.Platform, f.Device.App
	if s.dev != nil && next.Name == "" {
		next.Name = s.dev.Name
	}
	next.UserID, next.UserName, next.Label = user(f), f.User.Name, e.grant.label
	token, redeemed := "", true
	if e.grant.pair != "" {
		token = access.NewSecret()
		next.TokenHash = access.HashSecret(token)
	}
	moved := s.dev != nil && s.dev.UserID != next.UserID && s.shares() // conversations are shared by devices of one user
	if moved {
		next.Conversation = ""
	}
	attach := func(err error) {
		switch {
		case err != nil:
			e.fail(s, err)
			return
		case !redeemed:
			e.wrongCode(s)
			return
		case token != "" && !h.Pairing.Approved(next.UserID): // also where the settings let it in now: they may change
			if _, err := h.Pairing.ApproveUser(next.UserID, next.UserName); err != nil {
				h.log.Error("the approval of a paired device could not be written", "device", s.id, "error", err)
			}
		}
		if moved {
			s.parted()
		}
		s.dev = &next
		e.c.judge(true)
		if e.grant.own && e.grant.pair == "" {
			s.paired()
		}
		s.attach(e.c, f.Resume, token)
	}
	if s.dev != nil && next == *s.dev {
		b.then(func() { attach(nil) })
		return
	}
	b.do(func(tx *store.Tx) (err error) {
		if e.grant.pair != "" {
			if redeemed, err = tx.RedeemInvite(e.grant.pair, s.id, now); err != nil || !redeemed {
				return err
			}
		}
		if s.dev == nil {
			return tx.AddDevice(&next, now)
		}
		if moved {
			if err := tx.Part(next.N); err != nil {
				return err
			}
		}
		return tx.SaveDevice(&next, now)
	}, attach)
}

// paired: the device came with its own token. From now on the code that it was paired by is good for nothing.
func (s *session) paired() {
	used, err := s.hub.store.Redeemed(s.hub.ctx, s.id)
	if err != nil {
		s.hub.storeFailed("look a pairing code up", err)
		return
	}
	if n := s.dev.N; used {
		s.later("forget a used pairing code", func(tx *store.Tx) error { return tx.ForgetInvites(n) })
	}
}

// wrongCode turns a connection away whose one-time code is not valid, and counts it as a guess.
func (e *helloed) wrongCode(s *session) {
	s.hub.Guard.Wrong(e.grant.addr)
	s.hub.logRefused(s.id, e.grant.addr, frame.AuthFailed, "wrong pairing code")
	refusal := &frame.Error{Code: frame.AuthFailed, Message: "the pairing code is wrong, used or too old: make a new one with hermes-mobile pair"}
	s.hub.noteRefused(s.id, e.grant.addr, refusal)
	e.c.refuse(refusal, frame.CloseNoAccess)
}

func user(f *frame.Hello) string {
	if f.User.ID == "" {
		return f.Device.ID
	}
	return f.User.ID
}

// refusal says why this hello is turned away, nil if it is not.
func (e *helloed) refusal(s *session) *frame.Error {
	h := s.hub
	switch {
	case s.dev != nil && s.dev.Revoked:
		return &frame.Error{Code: frame.AuthFailed, Message: "this device was revoked by the agent's owner"}
	case s.dev != nil && s.dev.Label != "" && s.dev.Label != e.grant.label, s.dev != nil && s.dev.Label != "" && e.grant.pair != "" && !e.again:
		return &frame.Error{Code: frame.Forbidden, Message: "this device id is bound to another token: choose another id, or have the owner run hermes-mobile devices unbind"}
	case e.grant.pair == "" && s.foreignUser(user(e.f), e.grant.label):
		return &frame.Error{Code: frame.Forbidden, Message: "this user id belongs to devices with another token: choose another user.id, or pair this device with a code of hermes-mobile pair"}
	case h.AllowedDevices.Set() && !h.AllowedDevices.Has(s.id):
		return &frame.Error{Code: frame.AuthFailed, Message: "this device is not on the owner's list MOBILE_ALLOWED_DEVICES"}
	case h.AllowedUsers.Set() && e.grant.pair == "" && !h.approved(user(e.f)):
		return &frame.Error{Code: frame.AuthFailed, Message: "this user is neither on the owner's list MOBILE_ALLOWED_USERS nor approved"}
	}
	if s.conn != nil {
		if after, ok := h.replaced.Allow(s.id); !ok {
			return &frame.Error{Code: frame.RateLimited, Message: "this device replaced its own connection too often: wait before the next try", RetryAfter: seconds(after)}
		}
	}
	return nil
}

// foreignUser reports whether a user id is bound to another token: devices use it, and none of them with this token. A
// device that had it before keeps it, and a one-time code of the owner lets a further device in.
func (s *session) foreignUser(user, label string) bool {
	if s.dev != nil && s.dev.UserID == user {
		return false
	}
	list, err := s.hub.store.DevicesOf(s.hub.ctx, user)
	if err != nil {
		s.hub.storeFailed("look a user up", err)
		return true
	}
	bound := false
	for _, d := range list {
		if d.Label == label {
			return false
		}
		bound = bound || d.Label != ""
	}
	return bound
}

// attach makes a connection the device's live one and tells it what follows.
func (s *session) attach(c *conn, resume *frame.Cursor, token string) {
	h := s.hub
	if old := s.conn; old != nil {
		s.detach()
		old.end(frame.CloseReplaced, "a newer connection of this device took over")
	}
	s.conn = c
	s.push.doubt = 0
	stop(&s.timers.notice)
	c.liveSession.Store(s)
	if row, err := h.store.Device(h.ctx, s.id); err == nil && row != nil {
		s.dev.Floor = max(s.dev.Floor, row.Floor) // a sweep may have dropped old entries since this session was read
	}
	from, lost := max(s.dev.Sent, s.dev.Floor), false
	if resume != nil {
		from, lost = s.dev.Floor, true
		if resume.Epoch == s.dev.Epoch && resume.Seq >= s.dev.Floor && resume.Seq <= s.seq {
			from, lost = resume.Seq, false
		}
	}
	s.cursor, s.written, s.part = from, from, 0
	s.behind = s.seq > from
	s.look()
	s.resumed, s.leadCards = from, nil
	for _, st := range s.streams {
		st.to, st.shown, st.units = nil, "", 0
	}
	approved := h.approved(s.dev.UserID)
	c.welcome = approved
	h.Metrics.Hellos.WithLabelValues("ready").Inc()
	h.refusals.Forget(s.id)
	h.log.Info("a device is connected", "device", s.id, "addr", c.addr, "approved", approved, "replay", s.seq-from, "lost", lost)
	defer s.together(c)() // ready and what follows it
	c.send(&frame.Ready{Session: s.dev.Session(), AvatarURL: h.AvatarURL, Capabilities: s.capabilities(s.shown), Protocol: frame.Protocol,
		Server: "hermes-mobile/" + h.Version, Approved: approved, Agent: agentState(s.shown), Token: token,
		Resume: frame.Span{Epoch: s.dev.Epoch, From: from + 1, To: s.seq, Lost: lost}})
	for _, k := range s.cards { // those that the replay does not bring
		if k.row.State == store.CardOpen {
			k.again = k.row.Seq <= from
		}
	}
	if resume != nil && !lost {
		s.forget(resume.Seq)
	}
	s.pump()
	if s.joined() {
		h.post(s.dev.Conversation, catchUp{s.id})
	}
}

// gone: a connection has ended.
type gone struct {
	c       *conn
	silence time.Duration // before that, in which the device may have been away already
}

func (e gone) apply(s *session, b *batch) {
	s.flush(b) // which may end the connection, too
	if s.conn == e.c {
		s.doubt(max(e.silence, s.hub.LastMoments))
		s.detach()
		s.hub.log.Info("a device is gone", "device", s.id)
	}
}

// detach takes the connection from the session: uploads are freed, and what it was sent is noted.
func (s *session) detach() {
	s.noteWritten()
	s.conn.liveSession.Store(nil)
	s.conn = nil
	s.noteSent()
	s.deliveriesSent()
	s.push.given = nil
	s.noticeLater() // what it was not given after all
	if s.uploads != nil {
		s.uploads.Free()
		s.uploads = nil
	}
	stop(&s.timers.flush)
	stop(&s.timers.uploads)
	if s.joined() {
		s.unmirror()
	}
	if stop(&s.timers.idle); !s.typing {
		s.avatar = avatarIdle
	}
}

// together makes one write of what a connection is given until the function it returns is called.
func (s *session) together(c *conn) (end func()) {
	c.ws.Cork()
	return func() {
		c.ws.Uncork()
		if s.conn == c {
			s.noteWritten()
		}
	}
}

// noteWritten remembers how far the outbox has left for the device.
func (s *session) noteWritten() {
	if s.conn.clear() {
		s.written = s.cursor
		s.deliveriesSentSoon()
	}
}

// noteSent stores how far the device was sent its outbox, without waiting for it.
func (s *session) noteSent() {
	if s.dev == nil || s.written <= s.dev.Sent {
		return
	}
	n, seq := s.dev.N, s.written
	s.dev.Sent = seq
	s.later("note what was sent", func(tx *store.Tx) error { return tx.Sent(n, seq, time.Now()) })
}
