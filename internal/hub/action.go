package hub

import (
	"context"
	"errors"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/store"
)

// ActionOutcome is the decision of a card whose notification's button was pressed.
type ActionOutcome struct {
	OptionID string
	Before   bool // the card was decided before
	Expired  bool // since nobody answered in time
}

// Act answers a card with the token of one of its options, as the device's own answer would. Its errors are those of
// package notify.
func (h *Hub) Act(ctx context.Context, token string) (ActionOutcome, error) {
	a, err := h.notifications.Verify(token, time.Now())
	if err != nil {
		return ActionOutcome{}, err
	}
	type answer struct {
		outcome ActionOutcome
		err     error
	}
	got := make(chan answer, 1)
	h.post(a.Device, &evActionPressed{action: a, done: func(o ActionOutcome, err error) { got <- answer{o, err} }})
	select {
	case a := <-got:
		return a.outcome, a.err
	case <-ctx.Done():
		return ActionOutcome{}, ctx.Err()
	}
}

// evActionPressed: a person pressed a button of a notification.
type evActionPressed struct {
	action notify.Action
	done   func(ActionOutcome, error)
	by     *frame.Peer // a member of the conversation, whose session has passed it on; nil: the device itself
}

func (e *evActionPressed) fail(_ *session, err error) { e.done(ActionOutcome{}, err) }

func (e *evActionPressed) apply(s *session, b *batch) {
	b.flush()
	if s.dev == nil || e.by == nil && (s.dev.Revoked || !s.dev.Rights.Answer || !s.hub.approved(s.dev.UserID)) || e.by != nil && !slices.Contains(s.members, e.by.ID) {
		e.done(ActionOutcome{}, notify.ErrRejected)
		return
	}
	if e.by == nil && s.unanswerable() != nil {
		e.done(ActionOutcome{}, notify.ErrTooNew)
		return
	}
	by := s.peer()
	if e.by != nil {
		by = *e.by
	}
	k := s.card(e.action.Card)
	if k == nil || k.row.State != store.CardOpen {
		e.elsewhere(s, by)
		return
	}
	if !offers(k.prompt(), e.action.Option) {
		e.done(ActionOutcome{}, notify.ErrCut) // also a token that an earlier version of the server signed
		return
	}
	s.decide(b, k, agent.Answer{OptionID: e.action.Option}, &by, none, func(err error) {
		if errors.Is(err, errDecided) {
			s.hub.post(s.id, &overruled{id: k.ID, then: func(*batch) { e.elsewhere(s, by) }})
			return
		}
		if errors.Is(err, store.ErrTooNew) {
			err = notify.ErrTooNew
		}
		if err != nil {
			e.done(ActionOutcome{}, err)
			return
		}
		s.hub.Metrics.Cards.WithLabelValues("answered").Inc()
		e.done(ActionOutcome{OptionID: e.action.Option}, nil)
		s.tellDecisions()
	})
}

// elsewhere: the card is decided, of the lead's conversation, or none of the device's.
func (e *evActionPressed) elsewhere(s *session, by frame.Peer) {
	row, found, err := s.hub.store.Card(s.hub.ctx, e.action.Card)
	switch {
	case err != nil:
		s.hub.storeFailed("look a card up", err)
		e.done(ActionOutcome{}, err)
	case !found:
		e.done(ActionOutcome{}, notify.ErrExpired)
	case s.joined() && row.Device == s.lead && row.State == store.CardOpen:
		s.hub.post(s.dev.Conversation, &evActionPressed{action: e.action, done: e.done, by: &by})
	case row.Device != s.dev.N && row.Device != s.lead:
		e.done(ActionOutcome{}, notify.ErrRejected)
	case row.State == store.CardOpen: // stored as open and not known here: this cannot be answered
		e.done(ActionOutcome{}, notify.ErrExpired)
	default:
		e.done(ActionOutcome{OptionID: row.OptionID, Before: true, Expired: row.Expired}, nil)
	}
}
