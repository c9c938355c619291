package hub

import (
	"encoding/json"
	"fmt"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// maxAnnounced bounds how many devices are told about another one.
const maxAnnounced = 100

// noticeOf returns a notice about a device.
func noticeOf(d *store.Device, kind string, now time.Time) *frame.Notice {
	return &frame.Notice{ID: agent.NewID(), Kind: kind, User: d.UserID, At: now.UTC().Truncate(time.Second),
		Device: frame.NoticeDevice{ID: d.ID, Name: d.Name, Platform: d.Platform}}
}

// announce stores a notice for the other devices of its user. When that is committed, tell must be called.
func (h *Hub) announce(tx *store.Tx, n *frame.Notice, device int64) error {
	body, err := json.Marshal(&entry{Notice: n})
	if err != nil {
		panic(fmt.Sprintf("hub: encode notice: %v", err)) // strings only
	}
	h.passed.Store(true) // first: a session that is loaded meanwhile takes it
	return tx.Notify(n.User, device, body, maxAnnounced)
}

// tell makes the other devices of a user take their notices.
func (h *Hub) tell(user, except string) {
	list, err := h.store.DevicesOf(h.ctx, user)
	if err != nil {
		h.storeFailed("list the devices to tell about another", err) // they take it when they connect
		return
	}
	for _, d := range list {
		if d.ID != except && d.Notices && !d.Revoked {
			network{h}.takeShared(d.ID)
		}
	}
}

// mayRevoke implements observer. A device may revoke a newer one of its user that is not revoked.
func (d *device) mayRevoke(id string) (yes bool, other *store.Device, err error) {
	other, err = d.store.Device(d.ctx, id)
	if err != nil || other == nil || !d.dev.Rights.Answer {
		return false, other, err
	}
	me, err := d.store.Device(d.ctx, d.id)
	if err != nil || me == nil {
		return false, other, err
	}
	return newer(other, me) && !other.Revoked, other, nil
}

// newer reports whether a device came to the user of another device after that one.
func newer(d, than *store.Device) bool {
	return d.ID != than.ID && d.UserID != "" && d.UserID == than.UserID && d.CreatedAt.After(than.CreatedAt)
}

// revokeOther answers callRevoke. The device must have the right to answer cards, and be older than the other one.
// Otherwise a thief's device could revoke its owner's.
func (d *device) revokeOther(b *batch, c *conn, a *callReply) {
	b.flush()
	var p struct {
		ID string `json:"id"`
	}
	if !a.Params(&p) {
		return
	}
	allowed, other, err := d.mayRevoke(p.ID)
	wait := d.probation.left(time.Now())
	switch {
	case err != nil:
		d.storeFailed("look up a device", err)
		a.Stored(err)
	case other == nil || other.UserID != d.dev.UserID || other.UserID == "":
		a.Refuse(agent.NotFound, "your user has no such device: see devices.list")
	case !d.dev.Rights.Answer:
		a.Refuse(string(frame.Forbidden), noAnswers)
	case wait > 0:
		a.Refuse(string(frame.Forbidden), fmt.Sprintf("this device is new and may revoke others in %d seconds", seconds(wait)))
	case other.Revoked:
		a.Stored(nil)
	case !allowed:
		a.Refuse(string(frame.Forbidden), "a device may revoke only those that came after it: the owner can revoke every device")
	default:
		user, by := d.dev.UserID, audit.By{Actor: audit.ActorDevice(d.id), Origin: c.addr.String()}
		d.hub.post(p.ID, &evOwnerCall{done: a.Stored, f: func(o *device, b *batch, done func(error)) {
			if o.dev.UserID != user || o.dev.Revoked { // meanwhile
				done(nil)
				return
			}
			o.revoke(b, by, done)
		}})
	}
}

// restrain puts a device on probation, if its user has other devices that can answer cards.
func (h *Hub) restrain(tx *store.Tx, device int64, now time.Time) error {
	if h.AnswerWait == 0 {
		return nil
	}
	return tx.WaitToAnswer(device, now.Add(h.AnswerWait))
}
