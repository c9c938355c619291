package hub

import (
	"errors"
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// answer decides a card. Exactly one answer counts; a later one is told the decision.
func (i *intake) answer(b *batch, c *conn, f *frame.Answer) {
	b.flush()
	if i.seen(b, c, f.ID, ref(f)) {
		return
	}
	if i.group.joined() && i.conversation.cards.find(f.PromptID) == nil {
		row, found, err := i.store.Card(i.ctx, f.PromptID)
		switch {
		case err != nil:
			i.storeFailed("look up a card", err)
			c.send(storeDown(ref(f)))
			return
		case found && row.Device == i.group.primary:
			i.group.peers.answer(i.dev.Conversation, c, f, i.dev.N, i.peer())
			return
		}
	}
	i.answerFrom(b, c, f, i.dev.N, i.peer())
}

// answerOf decides a card of this conversation for a participant.
func (i *intake) answerOf(b *batch, c *conn, f *frame.Answer, device int64, by frame.Peer) {
	b.flush()
	if i.dev == nil || !slices.Contains(i.group.participants, by.ID) {
		c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown in another conversation: answer it there", Ref: ref(f)})
		return
	}
	i.answerFrom(b, c, f, device, by)
}

// answerFrom decides a card of this conversation for one of its devices.
func (i *intake) answerFrom(b *batch, c *conn, f *frame.Answer, device int64, by frame.Peer) {
	cards := &i.conversation.cards
	k := cards.find(f.PromptID)
	if k == nil || !k.open() {
		i.answerLate(b, c, f, device)
		return
	}
	choice, refusal := k.choice(f)
	if refusal != nil {
		c.send(refusal)
		return
	}
	cards.decide(b, k, choice, &by, func(tx *store.Tx) error {
		if f.ID == "" {
			return nil
		}
		_, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now())
		return err
	}, func(b *batch, v verdict) {
		switch {
		case errors.Is(v.err, store.ErrTooNew): // it became so meanwhile
			c.send(tooNew(i.AnswerWait, ref(f)))
		case v.err != nil:
			c.send(storeDown(ref(f)))
		case !v.first:
			i.answerLate(b, c, f, device)
		default:
			i.Metrics.Cards.WithLabelValues("answered").Inc()
			if f.ID != "" {
				c.send(&frame.Accepted{ID: f.ID})
			}
			cards.tell()
		}
	})
}

// answerLate answers an answer to a card that is decided, unknown, or another device's.
func (i *intake) answerLate(b *batch, c *conn, f *frame.Answer, device int64) {
	row, found, err := i.store.Card(i.ctx, f.PromptID)
	if err != nil {
		i.storeFailed("look up a card", err)
		c.send(storeDown(ref(f)))
		return
	}
	if found && row.Device != i.dev.N {
		c.send(&frame.Error{Code: frame.Forbidden, Message: "this card was shown to another device: answer it there", Ref: ref(f)})
		return
	}
	done := &frame.PromptDone{PromptID: f.PromptID, ID: f.PromptID, OptionID: row.OptionID, Expired: !found || row.Expired, By: i.conversation.cards.decidedBy(row)}
	if !i.remembers(f.ID) {
		c.send(done)
		if f.ID != "" {
			c.send(&frame.Accepted{ID: f.ID})
		}
		return
	}
	size := i.countID(f.ID)
	b.do(func(tx *store.Tx) error {
		if _, _, err := tx.Accept(device, f.ID, store.Done, nil, "", time.Now()); err != nil {
			return err
		}
		return size.save(tx)
	}, func(err error) {
		if err != nil {
			size.undo()
			c.send(storeDown(ref(f)))
			return
		}
		c.send(done)
		c.send(&frame.Accepted{ID: f.ID})
	})
}
