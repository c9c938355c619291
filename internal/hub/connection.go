package hub

import (
	"errors"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// attach makes a connection the live one of the device, and tells it what follows.
func (d *device) attach(c *conn, resume *frame.Cursor, token string) {
	if old := d.out.conn; old != nil {
		d.detach()
		old.end(frame.CloseReplaced, "a newer connection of this device took over")
	}
	d.notes.Connected()
	c.live.Store(true)
	if row, err := d.store.Device(d.ctx, d.id); err == nil && row != nil {
		d.dev.Floor = max(d.dev.Floor, row.Floor) // a sweep may have dropped old entries since this session was loaded
	}
	from, lost := max(d.dev.Sent, d.dev.Floor), false
	if resume != nil {
		from, lost = d.dev.Floor, true
		if resume.Epoch == d.dev.Epoch && resume.Seq >= d.dev.Floor && resume.Seq <= d.out.seq {
			from, lost = resume.Seq, false
		}
	}
	d.out.begin(c, from)
	d.refresh()
	d.group.connected(from)
	approved := d.approved(d.dev.UserID)
	c.approved = approved
	d.Metrics.Hellos.WithLabelValues("ready").Inc()
	d.hub.rejected.Forget(d.id)
	d.log.Info("device connected", "device", d.id, "addr", c.addr, "approved", approved, "replay", d.out.seq-from, "lost", lost)
	defer d.out.cork()() // ready and what follows it
	c.send(&frame.Ready{Session: d.dev.Session(), AvatarURL: d.AvatarURL, Capabilities: d.capabilities(d.shown), Protocol: frame.Protocol,
		Server: "hermes-mobile/" + d.Version, Approved: approved, Agent: agentState(d.shown), Token: token,
		Resume: frame.Span{Epoch: d.dev.Epoch, From: from + 1, To: d.out.seq, Lost: lost}})
	d.conversation.connected(from)
	if resume != nil && !lost {
		d.forget(resume.Seq)
	}
	d.out.pump()
	if d.group.joined() {
		d.group.peers.catchUp(d.dev.Conversation, d.id)
	}
	d.awaitAnswers()
	d.awaitExpiry()
}

// closed is called when a connection has ended after a silence, in which the device may have been offline already.
func (d *device) closed(b *batch, c *conn, silence time.Duration) {
	b.flush() // which may end the connection, too
	if d.out.conn == c {
		d.notes.Lost(max(silence, d.LastMoments))
		d.detach()
		d.log.Info("device disconnected", "device", d.id)
	}
}

// detach takes the connection from the session: uploads are freed, and what it was sent is noted.
func (d *device) detach() {
	d.out.noteWritten()
	d.out.conn.live.Store(false)
	d.out.conn = nil
	d.out.noteSent()
	d.deliveries.noteSent()
	d.group.disconnected()
	d.notes.Update() // of what it was not given after all
	d.uploads.free()
	d.probation.over.stop()
	d.expiry.stop()
	if d.group.joined() {
		d.conversation.unmirror()
	}
	d.conversation.disconnected()
}

// disconnect ends the live connection.
func (d *device) disconnect(code frame.CloseCode, reason string) {
	if c := d.out.conn; c != nil {
		d.detach()
		c.end(code, reason)
	}
}

// forget drops what the device has stored from its outbox, and withdraws the notifications of it.
func (d *device) forget(seq int64) {
	if d.out.forget(seq) {
		d.notes.UpdateShown()
	}
}

// awaitAnswers tells the device when it may answer cards.
func (d *device) awaitAnswers() {
	if d.out.conn == nil {
		d.probation.over.stop()
		return
	}
	d.probation.await(func() {
		if d.out.conn != nil {
			d.refresh()
			d.tellCapabilities()
		}
	})
}

// awaitExpiry closes the live connection when the token expires that it authenticated with.
func (d *device) awaitExpiry() {
	d.expiry.stop()
	if c := d.out.conn; c != nil && !c.expires.IsZero() {
		d.expiry.start(d.queue, time.Until(c.expires), func(b *batch) { b.then(d.tokenExpired) })
	}
}

// tokenExpired closes the live connection, whose token has expired.
func (d *device) tokenExpired() {
	switch c := d.out.conn; {
	case c == nil:
	case time.Now().Before(c.expires): // the clock was set back
		d.awaitExpiry()
	default:
		d.log.Info("token expired", "device", d.id)
		d.disconnect(frame.CloseNoAccess, "the token has expired")
	}
}

// evFrame: the live connection brought a frame.
type evFrame struct {
	d    *device
	c    *conn
	f    frame.Up
	held int64 // of the memory budget of large frames
}

func (e *evFrame) weight() int {
	switch f := e.f.(type) {
	case *frame.Media:
		return len(f.Data)
	case *frame.Audio:
		return len(f.Data)
	case *frame.Text:
		return len(f.Text)
	case *frame.Deliver:
		return len(f.Data)
	}
	return 64
}

func (e *evFrame) release() { e.d.unapplied.Give(e.held) }

func (e *evFrame) fail(error) { e.c.send(storeDown(ref(e.f))) }

func (e *evFrame) apply(b *batch) {
	d := e.d
	if !d.isLive(b, e.c) {
		return
	}
	d.out.noteWritten()
	switch f := e.f.(type) {
	case *frame.Ack:
		d.ack(b, e.c, f)
	case *frame.Deliver:
		d.deliverFor(b, e.c, f)
	default:
		d.intake.accept(b, e.c, f)
	}
}

// evPartSpoiled: the live connection brought a part of a file that cannot be read.
type evPartSpoiled struct {
	d *device
	c *conn
	e *frame.Error
}

func (e *evPartSpoiled) fail(error) { e.c.send(storeDown(e.e.Ref)) }

func (e *evPartSpoiled) apply(b *batch) {
	if e.d.isLive(b, e.c) {
		e.d.intake.spoiled(b, e.c, e.e)
	}
}

// isLive reports whether c is the live connection. A hello of c in the same batch takes effect first.
func (d *device) isLive(b *batch, c *conn) bool {
	if d.out.conn != c {
		b.flush()
	}
	return d.out.conn == c
}

// ack takes an acknowledgement of the device.
func (d *device) ack(b *batch, c *conn, f *frame.Ack) {
	if f.Token {
		d.tokenStored(b, c)
	}
	b.then(func() {
		if f.Seen {
			d.deliveries.acked(min(f.Seq, d.out.seq), true)
			d.group.tellSeen(f.Seq)
		}
		d.forget(f.Seq)
	})
}

// tokenStored is called when the device has stored the token from its ready frame. The code or token that it connected
// with is invalid from now on.
func (d *device) tokenStored(b *batch, c *conn) {
	given := c.given
	switch {
	case given == "":
		return
	case given == d.dev.TokenHash:
		b.then(d.forgetCode)
	case given == d.dev.NextHash:
		by := audit.By{Actor: audit.ActorDevice(d.id), Origin: c.addr.String()}
		b.do(func(tx *store.Tx) error {
			return errors.Join(tx.RenewToken(d.dev.N, given), tx.AddAudit(entryOf(by, "device.renewed", d.id, "")))
		}, func(err error) {
			if err != nil {
				return // the next hello does it
			}
			if dev := d.dev; dev.NextHash == given {
				dev.TokenHash, dev.NextHash, dev.Rotate = given, "", false
			}
			d.log.Info("device token renewed", "device", d.id)
		})
	}
}

// forgetCode makes the pairing code invalid by which the device was paired: it has connected with its own token.
func (d *device) forgetCode() {
	used, err := d.store.Redeemed(d.ctx, d.id)
	if err != nil {
		d.storeFailed("look up a pairing code", err)
		return
	}
	if n := d.dev.N; used {
		d.session.later("forget a used pairing code", func(tx *store.Tx) error { return tx.ForgetInvites(n) }, nil)
	}
}

// entryOf returns an entry of the audit log.
func entryOf(by audit.By, action, subject, detail string) store.AuditEntry {
	return store.AuditEntry{Actor: by.Actor, Origin: by.Origin, Action: action, Subject: subject, Detail: detail}
}
