package hub

import (
	"context"
	"errors"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// metaHome is the key of the home channel in the store.
const metaHome = "home"

// revoke ends the access of the device until it is unbound.
func (d *device) revoke(b *batch, by audit.By, done func(error)) {
	user := d.dev.Owner()
	d.wipe(b, "this device was revoked", func(tx *store.Tx) error {
		if err := tx.RevokeDevice(d.dev.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.revoked", d.id, "user "+user))
	}, func(err error) {
		if err == nil {
			d.dev.TokenHash, d.dev.NextHash, d.dev.Rotate, d.dev.Revoked = "", "", false, true
			d.log.Info("device revoked", "device", d.id, "user", user, "by", by)
		}
		done(err)
	})
}

// wipe drops everything that is stored for the device, and closes its connection with a reason. op
// is stored along with that.
func (d *device) wipe(b *batch, why string, op func(*store.Tx) error, done func(error)) {
	var epoch string
	seq := d.out.seq
	d.deliveries.noteSent() // otherwise those would expire
	b.do(func(tx *store.Tx) (err error) {
		if err := errors.Join(tx.Part(d.dev.N), tx.PairingCodes().Forget(d.dev.N)); err != nil {
			return err
		}
		if epoch, err = tx.WipeDevice(d.dev.N, seq, time.Now()); err != nil {
			return err
		}
		return op(tx)
	}, func(err error) {
		if err != nil {
			done(err)
			return
		}
		d.log.Info("device wiped", "device", d.id)
		d.part()
		d.disconnect(frame.CloseNoAccess, why)
		d.wiped(epoch, seq)
		done(nil)
	})
}

// wiped makes the session forget what was dropped: its outbox is empty and begins after seq.
func (d *device) wiped(epoch string, seq int64) {
	d.notes.Reset()
	d.group.given = nil
	d.stopTimers()
	d.conversation.reset()
	d.out.restart(epoch, seq)
}

// entitle applies new rights at once. Messages that the device sent before stay accepted.
func (d *device) entitle(r Rights) {
	d.dev.Rights = r
	if !r.Write {
		d.uploads.free()
	}
	d.refresh()
	d.tellCapabilities()
	d.awaitAnswers()
	d.log.Info("device rights changed", "device", d.id, "write", r.Write, "answer", r.Answer, "call", r.Call)
}

// tellApproved tells the device that its user was approved.
func (d *device) tellApproved(b *batch) {
	b.then(func() {
		if c := d.out.conn; c != nil && !c.approved {
			c.approved = true
			c.send(&frame.Approved{})
		}
	})
}

// makeHome makes the device the home channel, for whoever the context names. done may be nil.
func (d *device) makeHome(ctx context.Context, b *batch, done func(error)) {
	id := d.id
	b.do(func(tx *store.Tx) error {
		return errors.Join(tx.SetMeta(metaHome, []byte(id)), tx.Record(ctx, "home.set", id, ""))
	}, func(err error) {
		if err == nil {
			d.home.Store(&id)
		}
		if done != nil {
			done(err)
		}
	})
}

// agentMadeHome makes the device the home channel because a person told the agent so. A device that
// repeats it does not fill the audit log.
func (d *device) agentMadeHome(b *batch) {
	if *d.home.Load() != d.id {
		d.makeHome(audit.With(context.Background(), d.by()), b, nil)
	}
}

// dropUnapproved removes the device unless its user is approved, or it is connected, busy, shared,
// or the home channel.
func (d *device) dropUnapproved(b *batch, before time.Time, done func(error)) {
	h, dev := d.hub, d.dev
	if h.approved(dev.Owner()) {
		now := time.Now()
		b.do(func(tx *store.Tx) error { return tx.ApproveDevice(dev.N, now) }, func(err error) {
			if err == nil {
				dev.ApprovedAt = now
			}
			done(err)
		})
		return
	}
	if dev.Revoked || !dev.ApprovedAt.IsZero() || !dev.CreatedAt.Before(before) || d.pending > 0 || !d.idle() || d.group.shares() || h.isHome(d.id) {
		done(nil)
		return
	}
	delivered, err := h.store.Deliveries().Any(h.ctx, dev.N)
	if err != nil || delivered {
		done(err)
		return
	}
	b.do(func(tx *store.Tx) error {
		if err := tx.DropDevice(dev.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(audit.By{Actor: audit.ActorServer}, "device.dropped", d.id, "user "+dev.Owner()))
	}, func(err error) {
		if err == nil {
			d.unload()
			h.log.Info("unapproved device removed", "device", d.id)
		}
		done(err)
	})
}
