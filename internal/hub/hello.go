package hub

import (
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// evHello: a connection said hello for this device with a valid token, or with a pairing code.
type evHello struct {
	d     *device
	c     *reader
	f     *frame.Hello
	grant grant
	code  *store.PairingCode // that must be redeemed; nil: it came with a token
}

func (e *evHello) fail(error) { e.c.reject(storeDown(""), frame.CloseTryLater) }

func (e *evHello) apply(b *batch) {
	b.flush()
	h, now := e.d.hub, time.Now()
	if e.grant.pair != "" {
		h.admitting.Lock() // until the device's user is approved
		defer h.admitting.Unlock()
		var err error
		if e.code, err = h.store.PairingCodes().Valid(h.ctx, e.grant.pair, e.d.id, now); err != nil {
			h.storeFailed("look up a pairing code", err)
			e.fail(err)
			return
		}
		if e.code == nil {
			e.wrongCode()
			return
		}
	}
	if refusal := e.refusal(); refusal != nil {
		e.reject(refusal)
		return
	}
	n := e.next(now)
	if e.d.dev != nil && n.dev == *e.d.dev {
		e.welcome(n)
		return
	}
	b.do(func(tx *store.Tx) error { return e.store(tx, n, now) }, func(err error) {
		switch refusal := e.conflict(err); {
		case refusal != nil:
			e.reject(refusal)
		case err != nil:
			e.fail(err)
		default:
			e.welcome(n)
		}
	})
	if e.code != nil {
		b.flush() // the batch must be stored before the next code is checked
	}
}

// entrance is the device as a hello changes it.
type entrance struct {
	dev     store.Device
	token   string // its own, new: the device must be told
	renewed bool   // it came with the token that replaces its own
	entered bool   // it was not a device of this user before, or lost its token
	parted  bool   // it leaves a conversation that it shared
	emptied bool   // what is stored for it is not for the user who comes now
	handed  bool   // it was another user's
	epoch   string // of its outbox, if that was wiped
	seq     int64  // of the newest entry then
}

// next returns the device as it is from now on.
func (e *evHello) next(now time.Time) *entrance {
	h, f := e.d.hub, e.f
	n := &entrance{dev: store.Device{ID: e.d.id}, seq: e.d.out.seq}
	if e.d.dev != nil {
		n.dev = *e.d.dev
	}
	d := &n.dev
	name := d.Name
	d.Name, d.Platform, d.App, d.Notices = f.Device.Name, f.Device.Platform, f.Device.App, e.c.notices
	if d.Name == "" {
		d.Name = name
	}
	if user := e.user(); user != d.UserID || f.User.Name != "" || f.User.ID != "" {
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
	n.entered = e.d.dev == nil || e.d.dev.UserID != d.UserID || e.code != nil && !e.again()
	if n.parted = e.d.dev != nil && e.d.dev.UserID != d.UserID && e.d.group.shares(); n.parted { // conversations are shared by devices of one user
		d.Conversation = ""
	}
	if e.d.dev != nil && e.d.dev.WasUser != "" { // it was unbound
		n.handed = e.d.dev.WasUser != d.UserID
		n.emptied = n.handed || e.code == nil // any app token may bring the name of a user
	}
	return n
}

// store stores the device.
func (e *evHello) store(tx *store.Tx, n *entrance, now time.Time) error {
	h := e.d.hub
	if e.code != nil {
		switch ok, err := tx.PairingCodes().Redeem(e.code.Hash, e.d.id, n.dev.UserID, now); {
		case err != nil:
			return err
		case !ok:
			return errCodeGone
		}
	}
	if e.d.dev == nil {
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
		if n.handed && h.isHome(e.d.id) {
			if err := tx.SetMeta(metaHome, []byte{}); err != nil {
				return err
			}
		}
		if err := tx.SaveDevice(&n.dev, now); err != nil {
			return err
		}
	}
	if n.renewed {
		by := audit.By{Actor: audit.ActorDevice(e.d.id), Origin: e.grant.addr.String()}
		if err := tx.AddAudit(entryOf(by, "device.renewed", e.d.id, "")); err != nil {
			return err
		}
	}
	if !n.entered {
		return nil
	}
	return e.enter(tx, n, now)
}

// welcome makes the connection the live one of the device.
func (e *evHello) welcome(n *entrance) {
	h := e.d.hub
	if e.code != nil && !h.Pairing.Approved(n.dev.UserID) { // also if the settings let it in now: they may change
		approve := func() (access.User, error) { return h.Pairing.ApproveUser(n.dev.UserID, n.dev.UserName) }
		if _, err := h.approvals.Write(approve); err != nil {
			h.log.Error("approval not written", "device", e.d.id, "user", n.dev.UserID, "err", err)
		}
	}
	if n.parted {
		e.d.part()
	}
	e.d.dev = &n.dev
	e.c.judge(true)
	if n.emptied {
		e.d.wiped(n.epoch, n.seq)
	}
	if n.handed && h.isHome(e.d.id) {
		none := ""
		h.home.Store(&none)
	}
	if e.grant.own && e.code == nil {
		e.d.forgetCode()
	}
	if n.entered {
		e.entered(n)
	}
	e.c.expires = e.grant.expires
	if e.grant.own {
		e.c.expires = n.dev.ExpiresAt
	}
	if n.token != "" {
		e.c.given = access.HashSecret(n.token)
	}
	e.d.attach(&e.c.conn, e.f.Resume, n.token)
}

// rotated updates the device's tokens for a hello with the token of a hash. If that is the new
// token it becomes the only one. If the owner asked for a rotation another token is made.
func (n *entrance) rotated(came string) {
	d := &n.dev
	switch {
	case d.NextHash != "" && d.NextHash == came:
		d.TokenHash, d.NextHash, d.Rotate, n.renewed = came, "", false, true
	case d.Rotate:
		n.token = access.NewSecret()
		d.NextHash = access.HashSecret(n.token)
	}
}
