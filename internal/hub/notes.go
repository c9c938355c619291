package hub

import (
	"slices"

	"hermes-mobile/frame"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/store"
)

// noteHost is the session of a device as package notify sees it.
type noteHost struct{ s *session }

// noteBatch is a batch as package notify sees it.
type noteBatch struct{ *batch }

func (b noteBatch) Do(op func(*store.Tx) error, after func(error)) { b.do(op, after) }
func (b noteBatch) Then(f func())                                  { b.then(f) }
func (b noteBatch) Flush()                                         { b.flush() }

// Post implements notify.Host.
func (h noteHost) Post(f func(notify.Batch)) { h.s.run(func(b *batch) { f(noteBatch{b}) }) }

// State implements notify.Host.
func (h noteHost) State() notify.State {
	s := h.s
	if s.dev == nil {
		return notify.State{Context: s.hub.ctx}
	}
	return notify.State{Context: s.hub.ctx, N: s.dev.N, User: s.dev.UserID, Epoch: s.dev.Epoch, Connected: s.conn != nil,
		Muted: s.dev.Revoked || s.hub.closing.Load(), Sent: s.dev.Sent, Floor: s.dev.Floor, Newest: s.seq}
}

// Rejected implements notify.Host.
func (h noteHost) Rejected() bool { return h.s.hub.thrownOut(h.s.dev.Owner()) }

// MayAnswer implements notify.Host.
func (h noteHost) MayAnswer() bool { return h.s.unanswerable() == nil }

// StoreFailed implements notify.Host.
func (h noteHost) StoreFailed(op string, err error) { h.s.hub.storeFailed(op, err) }

// readNote reads the part of an outbox entry that a device is notified of.
func readNote(body []byte) (notify.Note, error) {
	e, err := readEntry(body)
	if err != nil {
		return notify.Note{}, err
	}
	return notify.Note{Message: e.Message, Media: e.Media, Prompt: e.Prompt, Notice: e.Notice}, nil
}

// unregister makes a device forget an endpoint of notifications that is no longer valid, or that another device has.
func (h *Hub) unregister(device, endpoint string) {
	h.run(device, func(s *session, b *batch) {
		b.flush()
		if s.dev != nil {
			s.notes.Unregister(noteBatch{b}, endpoint, nil)
		}
	})
}

// noteEntry updates the notifications after an entry was stored for the device.
func (s *session) noteEntry(e *entry) {
	switch {
	case e.Done != nil:
		s.notes.Done(e.Done.PromptID)
	case e.Message != nil, e.Media != nil, e.Prompt != nil, e.Notice != nil:
		s.notes.Update()
	}
}

// maxGiven bounds the entries that a session remembers after its connection was given them.
const maxGiven = 64

// noteGiven remembers an entry that the connection was given. The outbox forgets it before a person has seen it.
func (s *session) noteGiven(e *entry) {
	if s.hub.Push == nil || !s.shares() {
		return
	}
	n := store.Notice{Seq: e.seq}
	switch {
	case e.Message != nil:
		n.ID = e.Message.ID
	case e.Media != nil:
		n.ID = e.Media.ID
	default:
		return // a card is over when it is decided
	}
	if s.unseen = append(s.unseen, n); len(s.unseen) > maxGiven {
		s.unseen = slices.Delete(s.unseen, 0, 1)
	}
}

// tellSeen tells the other devices of the conversation that this one has shown its entries up to seq to a person.
func (s *session) tellSeen(seq int64) {
	var ids []string
	s.unseen = slices.DeleteFunc(s.unseen, func(n store.Notice) bool {
		if n.Seq <= seq {
			ids = append(ids, n.ID)
		}
		return n.Seq <= seq
	})
	switch {
	case len(ids) == 0:
	case s.joined():
		s.hub.seenElsewhere(s.dev.Conversation, ids, s.id)
	default:
		s.passSeen(ids, s.id)
	}
}

// seenElsewhere tells a device that another one of the conversation has shown messages to a person.
func (h *Hub) seenElsewhere(device string, ids []string, by string) {
	h.run(device, func(s *session, b *batch) {
		b.flush()
		b.then(func() {
			if s.dev == nil {
				return
			}
			s.passSeen(ids, by)
			s.notes.Done(ids...)
		})
	})
}

// passSeen tells the members, if the session is their lead.
func (s *session) passSeen(ids []string, by string) {
	for _, id := range s.members {
		if id != by {
			s.hub.seenElsewhere(id, ids, by)
		}
	}
}

// offers reports whether a notification of a card may choose an option.
func offers(p *frame.Prompt, option string) bool {
	return slices.ContainsFunc(notify.Offered(p), func(o frame.Option) bool { return o.ID == option })
}
