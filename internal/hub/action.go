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
	onDevice
	action notify.Action
	done   func(ActionOutcome, error)
	by     *frame.Peer // a participant, whose session has passed it on; nil: the device itself
}

func (e *evActionPressed) fail(err error) { e.done(ActionOutcome{}, err) }

func (e *evActionPressed) apply(b *batch) {
	d := e.d
	b.flush()
	if d.dev == nil || !e.permitted() {
		e.done(ActionOutcome{}, notify.ErrRejected)
		return
	}
	if e.by == nil && d.probation.answerRefusal() != nil {
		e.done(ActionOutcome{}, notify.ErrTooNew)
		return
	}
	by := d.peer()
	if e.by != nil {
		by = *e.by
	}
	cards := &d.conversation.cards
	k := cards.find(e.action.Card)
	if k == nil || !k.open() {
		e.elsewhere(by)
		return
	}
	if !slices.ContainsFunc(notify.Offered(k.prompt()), func(o frame.Option) bool { return o.ID == e.action.Option }) {
		e.done(ActionOutcome{}, notify.ErrCut) // also for a token that an earlier version of the server signed
		return
	}
	cards.decide(b, k, agent.Answer{OptionID: e.action.Option}, &by, none, func(_ *batch, v verdict) {
		switch {
		case errors.Is(v.err, store.ErrTooNew):
			e.done(ActionOutcome{}, notify.ErrTooNew)
		case v.err != nil:
			e.done(ActionOutcome{}, v.err)
		case !v.first:
			e.elsewhere(by)
		default:
			d.Metrics.Cards.WithLabelValues("answered").Inc()
			e.done(ActionOutcome{OptionID: e.action.Option}, nil)
			cards.tell()
		}
	})
}

// permitted reports whether the device may answer cards at all, or is a participant of the conversation.
func (e *evActionPressed) permitted() bool {
	d := e.d
	if e.by != nil {
		return slices.Contains(d.group.participants, e.by.ID)
	}
	return !d.dev.Revoked && d.dev.Rights.Answer && d.approved(d.dev.UserID)
}

// elsewhere answers for a card that is decided, in the primary's conversation, or another device's.
func (e *evActionPressed) elsewhere(by frame.Peer) {
	d := e.d
	row, found, err := d.store.Card(d.ctx, e.action.Card)
	switch {
	case err != nil:
		d.storeFailed("look up a card", err)
		e.done(ActionOutcome{}, err)
	case !found:
		e.done(ActionOutcome{}, notify.ErrExpired)
	case d.group.joined() && row.Device == d.group.primary && row.State == store.CardOpen:
		d.hub.post(d.dev.Conversation, &evActionPressed{action: e.action, done: e.done, by: &by})
	case row.Device != d.dev.N && row.Device != d.group.primary:
		e.done(ActionOutcome{}, notify.ErrRejected)
	case row.State == store.CardOpen: // stored as open and unknown here: it can't be answered
		e.done(ActionOutcome{}, notify.ErrExpired)
	default:
		e.done(ActionOutcome{OptionID: row.OptionID, Before: true, Expired: row.Expired}, nil)
	}
}
