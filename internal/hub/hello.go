package hub

import (
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// helloed: a connection said hello for this device with a valid token, or with a pairing code.
type helloed struct {
	c     *conn
	f     *frame.Hello
	grant grant
	code  *store.Invite // that is to be redeemed; nil: it came with a token
}

func (e *helloed) fail(_ *session, _ error) { e.c.refuse(storeDown(""), frame.CloseTryLater) }

func storeDown(ref string) *frame.Error {
	return &frame.Error{Code: frame.Internal, Message: "the server cannot use its store now, nothing was taken: try again later", Ref: ref}
}

func (e *helloed) apply(s *session, b *batch) {
	b.flush()
	h, now := s.hub, time.Now()
	if e.grant.pair != "" {
		h.admitting.Lock() // until the device's user is approved
		defer h.admitting.Unlock()
		var err error
		if e.code, err = h.store.Invite(h.ctx, e.grant.pair, s.id, now); err != nil {
			h.storeFailed("look a pairing code up", err)
			e.fail(s, err)
			return
		}
		if e.code == nil {
			e.wrongCode(s)
			return
		}
	}
	if refusal := e.refusal(s); refusal != nil {
		e.turnAway(s, refusal)
		return
	}
	n := e.next(s, now)
	if s.dev != nil && n.dev == *s.dev {
		e.welcome(s, n)
		return
	}
	b.do(func(tx *store.Tx) error { return e.store(tx, s, n, now) }, func(err error) {
		switch refusal := e.conflict(err); {
		case refusal != nil:
			e.turnAway(s, refusal)
		case err != nil:
			e.fail(s, err)
		default:
			e.welcome(s, n)
		}
	})
	if e.code != nil {
		b.flush() // before another code is looked at
	}
}

// entrance is what a hello makes of its device.
type entrance struct {
	dev     store.Device
	token   string // its own, new: to be told
	renewed bool   // it came with the token that was to replace its own
	entered bool   // it was not a device of this user before, or lost its token
	parted  bool   // it leaves the conversation that it shared
	emptied bool   // what is kept for it is not for whoever comes now
	handed  bool   // it was another user's
	epoch   string // of its outbox, where that was wiped
	seq     int64  // the last that was allotted then
}

// next works out what the device is from now on.
func (e *helloed) next(s *session, now time.Time) *entrance {
	h, f := s.hub, e.f
	n := &entrance{dev: store.Device{ID: s.id}, seq: s.seq}
	if s.dev != nil {
		n.dev = *s.dev
	}
	d := &n.dev
	name := d.Name
	d.Name, d.Platform, d.App, d.Notices = f.Device.Name, f.Device.Platform, f.Device.App, e.c.notices
	if d.Name == "" {
		d.Name = name
	}
	if user := e.user(s); user != d.UserID || f.User.Name != "" || f.User.ID != "" {
		d.UserID, d.UserName = user, f.User.Name
	}
	d.Label, d.WasUser = e.grant.label, ""
	if e.code != nil {
		n.token = access.NewSecret()
		d.TokenHash, d.NextHash, d.Rotate, d.ExpiresAt = access.HashSecret(n.token), "", false, time.Time{}
		if e.code.Life > 0 {
			d.ExpiresAt = now.Add(e.code.Life)
		}
	}
	if e.grant.own && e.code == nil {
		n.rotated(e.grant.hash)
	}
	if d.ApprovedAt.IsZero() && (e.code != nil || h.approved(d.UserID)) {
		d.ApprovedAt = now
	}
	n.entered = s.dev == nil || s.dev.UserID != d.UserID || e.code != nil && !e.again()
	if n.parted = s.dev != nil && s.dev.UserID != d.UserID && s.shares(); n.parted { // conversations are shared by devices of one user
		d.Conversation = ""
	}
	if s.dev != nil && s.dev.WasUser != "" { // it was unbound
		n.handed = s.dev.WasUser != d.UserID
		n.emptied = n.handed || e.code == nil // any app token may bring the name of a user
	}
	return n
}

// store writes the device down.
func (e *helloed) store(tx *store.Tx, s *session, n *entrance, now time.Time) error {
	if e.code != nil {
		switch ok, err := tx.RedeemInvite(e.code.Hash, s.id, n.dev.UserID, now); {
		case err != nil:
			return err
		case !ok:
			return errCodeGone
		}
	}
	if s.dev == nil {
		if err := tx.AddDevice(&n.dev, now); err != nil {
			return err
		}
	} else {
		if n.parted {
			if err := tx.Part(n.dev.N); err != nil {
				return err
			}
		}
		if n.emptied {
			var err error
			if n.epoch, err = tx.WipeDevice(n.dev.N, n.seq, now); err != nil {
				return err
			}
		}
		if n.handed && s.hub.isHome(s.id) {
			if err := tx.SetMeta(metaHome, []byte{}); err != nil {
				return err
			}
		}
		if err := tx.SaveDevice(&n.dev, now); err != nil {
			return err
		}
	}
	if n.renewed {
		by := audit.By{Actor: audit.ActorDevice(s.id), Origin: e.grant.addr.String()}
		if err := tx.AddAudit(entryOf(by, "device.renewed", s.id, "")); err != nil {
			return err
		}
	}
	if !n.entered {
		return nil
	}
	return e.enter(tx, s, n, now)
}

// welcome makes the connection the device's.
func (e *helloed) welcome(s *session, n *entrance) {
	h := s.hub
	if e.code != nil && !h.Pairing.Approved(n.dev.UserID) { // also where the settings let it in now: they may change
		approve := func() (access.User, error) { return h.Pairing.ApproveUser(n.dev.UserID, n.dev.UserName) }
		if _, err := h.approvals.Write(approve); err != nil {
			h.log.Error("approval of a paired device not written", "device", s.id, "user", n.dev.UserID, "err", err)
		}
	}
	if n.parted {
		s.parted()
	}
	s.dev = &n.dev
	e.c.judge(true)
	if n.emptied {
		s.wiped(n.epoch, n.seq)
	}
	if n.handed && h.isHome(s.id) {
		none := ""
		h.home.Store(&none)
	}
	if e.grant.own && e.code == nil {
		s.paired()
	}
	if n.entered {
		e.entered(s, n)
	}
	e.c.expires = e.grant.expires
	if e.grant.own {
		e.c.expires = n.dev.ExpiresAt
	}
	if n.token != "" {
		e.c.given = access.HashSecret(n.token)
	}
	s.attach(e.c, e.f.Resume, n.token)
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

// attach makes a connection the device's live one and tells it what follows.
func (s *session) attach(c *conn, resume *frame.Cursor, token string) {
	h := s.hub
	if old := s.conn; old != nil {
		s.detach()
		old.end(frame.CloseReplaced, "a newer connection of this device took over")
	}
	s.conn = c
	s.notes.Connected()
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
	h.rejections.Forget(s.id)
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
	s.awaitAnswers()
	s.awaitExpiry()
}

// gone: a connection has ended.
type gone struct {
	c       *conn
	silence time.Duration // before that, in which the device may have been away already
}

func (e gone) apply(s *session, b *batch) {
	b.flush() // which may end the connection, too
	if s.conn == e.c {
		s.notes.Lost(max(e.silence, s.hub.LastMoments))
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
	s.unseen = nil
	s.notes.Update() // what it was not given after all
	if s.uploads != nil {
		s.uploads.Free()
		s.uploads = nil
	}
	stop(&s.timers.flush)
	stop(&s.timers.uploads)
	stop(&s.timers.answers)
	stop(&s.timers.expiry)
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
