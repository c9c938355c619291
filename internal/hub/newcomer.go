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

// A device that is new for a user, that joins a conversation, or that is given more rights is announced to the user's other
// devices, which may revoke it. For a minute it may not answer cards: whoever got in by a stolen code or token is seen before an
// agent obeys. The first device of a user does not wait, nor does one whose code the owner marked as trusted.
//
// When it may answer is checked where its frames come in (rights.go), where a notification's button is pressed (pushaction.go),
// and once more in the transaction that decides the card, which nothing gets around.

// answerWait is for how long a new device may not answer cards.
const answerWait = time.Minute

// maxTold bounds how many devices are told of another one.
const maxTold = 100

// patient says how long the device must wait until it may answer cards, 0 where it may now.
func (s *session) patient(now time.Time) time.Duration { return max(s.dev.AnswersAt.Sub(now), 0) }

// tooNew refuses an answer of a device that must wait.
func tooNew(wait time.Duration, ref string) *frame.Error {
	n := seconds(wait)
	return &frame.Error{Code: frame.Forbidden, Ref: ref, RetryAfter: n,
		Message: fmt.Sprintf("this device is new and may answer questions in %d seconds: another device of its user can answer now", n)}
}

// steadyWait makes the time that the device must wait one of the clock that is never set. A clock that was set back must not make it
// longer.
func (s *session) steadyWait() {
	now := time.Now()
	wait := s.patient(now)
	if wait == 0 {
		s.dev.AnswersAt = time.Time{}
		return
	}
	if wait > s.hub.AnswerWait {
		wait = s.hub.AnswerWait
		n, until := s.dev.N, now.Add(wait)
		s.later("shorten the time that a device waits", func(tx *store.Tx) error { return tx.ShortenWait(n, until) })
	}
	s.dev.AnswersAt = now.Add(wait)
}

// awaitAnswers tells the device when it may answer.
func (s *session) awaitAnswers() {
	stop(&s.timers.answers)
	if wait := s.patient(time.Now()); wait > 0 && s.conn != nil {
		s.start(&s.timers.answers, wait, mayAnswer{})
	}
}

// mayAnswer: the time that the device had to wait is over.
type mayAnswer struct{}

func (mayAnswer) apply(s *session, b *batch) {
	b.then(func() {
		s.timers.answers = nil
		if s.dev == nil || s.conn == nil {
			return
		}
		if s.patient(time.Now()) > 0 { // a timer may be early by a moment
			s.awaitAnswers()
			return
		}
		s.look()
		s.tellCapabilities()
	})
}

// noticeOf makes a notice about a device.
func noticeOf(d *store.Device, kind string, now time.Time) *frame.Notice {
	return &frame.Notice{ID: agent.NewID(), Kind: kind, User: d.UserID, At: now.UTC().Truncate(time.Second),
		Device: frame.NoticeDevice{ID: d.ID, Name: d.Name, Platform: d.Platform}}
}

// announce stores a notice for the other devices of its user. Once that is committed, tell must be called.
func (h *Hub) announce(tx *store.Tx, n *frame.Notice, device int64) error {
	body, err := json.Marshal(&entry{Notice: n})
	if err != nil {
		panic(fmt.Sprintf("hub: encode a notice: %v", err)) // strings only
	}
	h.passed.Store(true) // first: a session that is read meanwhile takes it
	return tx.Notify(n.User, device, body, maxTold)
}

// tell makes the other devices of a user take what is announced to them.
func (h *Hub) tell(user, except string) {
	list, err := h.store.DevicesOf(h.ctx, user)
	if err != nil {
		h.storeFailed("see whom to tell of a device", err) // they take it when they connect
		return
	}
	for _, d := range list {
		if d.ID != except && d.Notices && !d.Revoked {
			h.post(d.ID, shared{})
		}
	}
}

// callRevoke is the call by which a device revokes a newer one of its user.
const callRevoke = "devices.revoke"

// mayRevoke reports whether the device may revoke another one: it is of the same user, was there first, and is not revoked.
func (s *session) mayRevoke(id string) (yes bool, other *store.Device, err error) {
	other, err = s.hub.store.Device(s.hub.ctx, id)
	if err != nil || other == nil || !s.dev.Rights.Answer {
		return false, other, err
	}
	me, err := s.hub.store.Device(s.hub.ctx, s.id)
	if err != nil || me == nil {
		return false, other, err
	}
	return newer(other, me) && !other.Revoked, other, nil
}

// newer reports whether a device came to the user of another after that one.
func newer(d, than *store.Device) bool {
	return d.ID != than.ID && d.UserID != "" && d.UserID == than.UserID && d.CreatedAt.After(than.CreatedAt)
}

// revokeDevice answers the call. Only who may answer cards, and was there before the other one, may shut it out: else a thief's
// device would revoke its owner's.
func (s *session) revokeDevice(b *batch, c *conn, f *frame.Call) {
	b.flush()
	a := &callAnswer{c, f}
	var p struct {
		ID string `json:"id"`
	}
	if !a.Params(&p) {
		return
	}
	allowed, other, err := s.mayRevoke(p.ID)
	wait := s.patient(time.Now())
	switch {
	case err != nil:
		s.hub.storeFailed("look a device up", err)
		a.Stored(err)
	case other == nil || other.UserID != s.dev.UserID || other.UserID == "":
		a.Refuse(agent.NotFound, "your user has no such device: see devices.list")
	case !s.dev.Rights.Answer:
		a.Refuse(string(frame.Forbidden), noAnswers)
	case wait > 0:
		a.Refuse(string(frame.Forbidden), fmt.Sprintf("this device is new and may revoke others in %d seconds", seconds(wait)))
	case other.Revoked:
		a.Stored(nil)
	case !allowed:
		a.Refuse(string(frame.Forbidden), "a device may revoke only those that came after it: the owner can revoke every device")
	default:
		user, by := s.dev.UserID, audit.By{Actor: audit.ActorDevice(s.id), Origin: c.addr.String()}
		s.hub.post(p.ID, &asked{done: a.Stored, f: func(o *session, b *batch, done func(error)) {
			if o.dev.UserID != user || o.dev.Revoked { // meanwhile
				done(nil)
				return
			}
			o.revoke(b, by, done)
		}})
	}
}

// restrain keeps a device from answering cards for a while, where its user has others that can.
func (h *Hub) restrain(tx *store.Tx, device int64, now time.Time) error {
	if h.AnswerWait == 0 {
		return nil
	}
	return tx.WaitToAnswer(device, now.Add(h.AnswerWait))
}

// restrained takes in when the device may answer, after that was stored.
func (s *session) restrained() {
	row, err := s.hub.store.Device(s.hub.ctx, s.id)
	if err == nil && row == nil {
		err = ErrUnknownDevice
	}
	if err != nil { // the transaction that decides a card knows it all the same
		s.hub.storeFailed("see when a device may answer", err)
		return
	}
	s.dev.AnswersAt, s.dev.CreatedAt = row.AnswersAt, row.CreatedAt
	s.steadyWait()
}
