package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Devices of one user may share a conversation: that of one of them, its lead, which the others have joined. The session
// of the lead is the conversation: it has the turn, the cards and what waits. Every device keeps its own outbox,
// connection and receipts. What a member sends is stored as input of the lead's conversation; what is durable down is
// stored for all at once, and each session takes its own copy into its outbox (takeShared), so that a crash at any moment
// leaves no device without it. What is live only is passed on to those that are connected (mirror.go).

// maxMembers bounds the devices that may join one conversation.
const maxMembers = 16

// Reasons why a device cannot join a conversation.
var (
	errOwnConversation = errors.New("a device takes part in its own conversation already")
	errOtherUser       = errors.New("the two devices belong to different users: a conversation is shared by devices of one user only")
	errMembers         = fmt.Errorf("%d devices have joined this conversation already, which is the most", maxMembers)
)

// Join makes a device take part in the conversation of another one of its user, until Leave. Its own rests meanwhile.
func (h *Hub) Join(ctx context.Context, id, conversation string) error {
	h.grouping.Lock()
	defer h.grouping.Unlock()
	member, err := h.known(ctx, id)
	if err != nil {
		return err
	}
	lead, err := h.known(ctx, conversation)
	if err != nil {
		return err
	}
	followers, err := h.store.Members(ctx, id)
	if err != nil {
		return err
	}
	members, err := h.store.Members(ctx, conversation)
	switch {
	case err != nil:
		return err
	case id == conversation:
		return errOwnConversation
	case member.Revoked || lead.Revoked:
		return errors.New("a revoked device shares no conversation")
	case !member.Bound() || !lead.Bound():
		return errors.New("an unbound device shares no conversation: it is nobody's until it comes back")
	case member.UserID != lead.UserID:
		return errOtherUser
	case lead.Conversation != "":
		return fmt.Errorf("%s has joined the conversation of %s itself: join that", conversation, lead.Conversation)
	case len(followers) > 0:
		return fmt.Errorf("others have joined the conversation of %s: they must leave it first (%s)", id, followers[0])
	case len(members) >= maxMembers:
		return errMembers
	}
	by, now := audit.From(ctx), time.Now()
	err = h.store.Do(func(tx *store.Tx) error {
		if err := tx.Join(member.N, conversation); err != nil {
			return err
		}
		if err := h.restrain(tx, member.N, now); err != nil {
			return err
		}
		n := noticeOf(member, frame.DeviceJoined, now)
		n.Conversation = conversation
		if err := h.announce(tx, n, member.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.joined", id, "conversation of "+conversation))
	})
	if err != nil {
		return err
	}
	h.sharing.Store(true)
	defer h.tell(member.UserID, id)
	return errors.Join(h.regroup(ctx, id), h.regroup(ctx, conversation))
}

// Leave gives a device its own conversation again.
func (h *Hub) Leave(ctx context.Context, id string) error {
	h.grouping.Lock()
	defer h.grouping.Unlock()
	member, err := h.known(ctx, id)
	if err != nil {
		return err
	}
	if member.Conversation == "" {
		return fmt.Errorf("%s has not joined the conversation of another device", id)
	}
	by := audit.From(ctx)
	err = h.store.Do(func(tx *store.Tx) error {
		if err := tx.Join(member.N, ""); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.left", id, "conversation of "+member.Conversation))
	})
	if err != nil {
		return err
	}
	return errors.Join(h.regroup(ctx, id), h.regroup(ctx, member.Conversation))
}

func (h *Hub) known(ctx context.Context, id string) (*store.Device, error) {
	dev, err := h.store.Device(ctx, id)
	if err == nil && dev == nil {
		err = fmt.Errorf("%w (%s)", ErrUnknownDevice, id)
	}
	return dev, err
}

// regroup makes a session see whom it shares a conversation with now.
func (h *Hub) regroup(ctx context.Context, id string) error {
	return h.ask(ctx, id, func(s *session, _ *batch, done func(error)) { done(s.regroup()) })
}

// regrouped: whom the device shares a conversation with may have changed.
type regrouped struct{}

func (regrouped) apply(s *session, b *batch) {
	b.flush()
	if s.dev == nil {
		return
	}
	if err := s.regroup(); err != nil {
		s.hub.storeFailed("see who shares a conversation", err)
	}
}

func (s *session) regroup() error {
	before := s.shares()
	dev, err := s.hub.store.Device(s.hub.ctx, s.id)
	if err != nil || dev == nil {
		return err
	}
	if err := s.loadGroup(dev.Conversation); err != nil {
		return err
	}
	s.dev.AnswersAt = dev.AnswersAt
	s.steadyWait()
	if dev.Conversation != s.dev.Conversation {
		s.dev.Conversation = dev.Conversation
		s.unmirror()
		s.disconnect(frame.CloseGoingAway, "this device takes part in another conversation now: connect again")
		return nil
	}
	if s.shares() != before {
		s.tellCapabilities()
	}
	return nil
}

// loadGroup reads who has joined this conversation, and the number of the lead of the one that this device has joined.
func (s *session) loadGroup(conversation string) error {
	s.members, s.lead = nil, 0
	if !s.hub.sharing.Load() {
		return nil
	}
	members, err := s.hub.store.Members(s.hub.ctx, s.id)
	if err != nil {
		return err
	}
	s.members = members
	if conversation == "" {
		return nil
	}
	lead, err := s.hub.store.Device(s.hub.ctx, conversation)
	if err != nil || lead == nil {
		return errors.Join(err, ErrUnknownDevice)
	}
	s.lead = lead.N
	return nil
}

// joined reports whether the device takes part in the conversation of another.
func (s *session) joined() bool { return s.dev.Conversation != "" }

// shares reports whether the conversation is one of several devices.
func (s *session) shares() bool { return s.joined() || len(s.members) > 0 }

// peer is the device as others in the conversation see it.
func (s *session) peer() frame.Peer { return frame.Peer{ID: s.id, Name: s.dev.Name} }

// parted tells those who shared something with the device that they do no longer. It is called after Tx.Part.
func (s *session) parted() {
	for _, id := range s.members {
		s.hub.post(id, regrouped{})
	}
	if s.joined() {
		s.hub.post(s.dev.Conversation, regrouped{})
	}
	s.members, s.lead, s.dev.Conversation = nil, 0, ""
	s.unmirror()
}

// appendAll is append for what all devices of the conversation get.
func (s *session) appendAll(b *batch, e *entry, op func(*store.Tx) error, after func(error)) {
	if len(s.members) == 0 {
		s.append(b, e, op, after)
		return
	}
	share := s.share(e)
	s.append(b, e, func(tx *store.Tx) error {
		if err := share(tx); err != nil || op == nil {
			return err
		}
		return op(tx)
	}, func(err error) {
		if err == nil {
			s.wakeMembers("")
		}
		if after != nil {
			after(err)
		}
	})
}

// share returns what stores an entry for all other devices of the conversation.
func (s *session) share(e *entry) func(*store.Tx) error {
	body, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("hub: encode a shared entry: %v", err))
	}
	conversation, self := s.dev.Talks(), s.dev.N
	return func(tx *store.Tx) error { return tx.Share(conversation, self, e.kind(), body, e.Hash) }
}

// wakeMembers makes the members take what is stored for them.
func (s *session) wakeMembers(except string) {
	for _, id := range s.members {
		if id != except {
			s.hub.post(id, shared{})
		}
	}
}

// shared: something is stored for this device that came in the conversation it shares.
type shared struct{}

func (shared) apply(s *session, b *batch) {
	b.flush()
	s.takeShared(b)
}

// sharedRows bounds what one read takes.
const sharedRows = 32

// takeShared puts what is stored for this device into its outbox. Nothing may be waiting in b.
func (s *session) takeShared(b *batch) {
	if s.dev == nil {
		return
	}
	rows, err := s.hub.store.Shared(s.hub.ctx, s.dev.N, s.taken, sharedRows)
	if err != nil {
		s.hub.storeFailed("read what is shared", err)
		s.start(&s.timers.retry, retryAway, retryNow{})
		return
	}
	for _, row := range rows {
		n := row.N
		take := func(tx *store.Tx) error { return tx.TakeShared(n) }
		s.taken = n
		e, err := readEntry(row.Body)
		if err != nil {
			s.hub.log.Error("what is shared cannot be read", "device", s.id, "error", err)
			b.do(take, nil)
			continue
		}
		switch {
		case e.Message != nil:
			e.ended = s.dropStream(e.Message.ID)
		case e.Done != nil:
			s.leadCards = slices.DeleteFunc(s.leadCards, func(p *frame.Prompt) bool { return p.ID == e.Done.ID })
		}
		s.append(b, e, take, func(err error) {
			if err != nil { // read again
				s.taken = min(s.taken, n-1)
				s.start(&s.timers.retry, retryAway, retryNow{})
			}
		})
	}
	b.flush() // a failure of this is not one of what else happens
	if len(rows) == sharedRows {
		s.post(shared{})
	}
}

// arrived: a member has sent something to this conversation, which is stored.
type arrived struct {
	in     agent.Input
	away   bool
	member string // that sent it
}

func (e *arrived) fail(s *session, err error) { wake{}.fail(s, err) }

func (e *arrived) apply(s *session, b *batch) {
	b.flush()
	s.takeShared(b)
	b.then(func() {
		s.wakeMembers(e.member)
		if e.in.N > s.loadedTo { // else it was read from the store
			s.enter(e.in, e.away)
		}
	})
}

// answered: a member has answered a card.
type answered struct {
	e      *received
	f      *frame.Answer
	member frame.Peer
	device int64
}

func (e *answered) fail(s *session, err error) { e.e.fail(s, err) }

func (e *answered) apply(s *session, b *batch) {
	b.flush()
	if s.dev == nil || !slices.Contains(s.members, e.member.ID) {
		e.e.c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown in another conversation, where alone it can be answered", Ref: ref(e.f)})
		return
	}
	s.take(b, e.e, e.f, e.device, e.member)
}

// interrupted: a member wants the running turn to stop.
type interrupted struct{}

func (interrupted) apply(s *session, b *batch) { b.then(s.interrupt) }
