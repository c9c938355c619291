package hub

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/store"
)

// Reasons why a device cannot join a conversation.
var (
	errOwnConversation = errors.New("a device takes part in its own conversation already")
	errOtherUser       = errors.New("the two devices belong to different users: a conversation is shared by devices of one user only")
	errParticipants    = fmt.Errorf("%d devices have joined this conversation already, which is the limit", maxParticipants)
)

// Join makes a device take part in the conversation of another one of its user, until Leave. Its own rests meanwhile.
func (o *Owner) Join(ctx context.Context, id, conversation string) error {
	o.hub.grouping.Lock()
	defer o.hub.grouping.Unlock()
	participant, err := o.known(ctx, id)
	if err != nil {
		return err
	}
	primary, err := o.known(ctx, conversation)
	if err != nil {
		return err
	}
	others, err := o.hub.store.Members(ctx, id)
	if err != nil {
		return err
	}
	participants, err := o.hub.store.Members(ctx, conversation)
	switch {
	case err != nil:
		return err
	case id == conversation:
		return errOwnConversation
	case participant.Revoked || primary.Revoked:
		return errors.New("a revoked device shares no conversation")
	case !participant.Bound() || !primary.Bound():
		return errors.New("an unbound device shares no conversation: it has no user until it comes back")
	case participant.UserID != primary.UserID:
		return errOtherUser
	case primary.Conversation != "":
		return fmt.Errorf("%s has joined the conversation of %s itself: join that", conversation, primary.Conversation)
	case len(others) > 0:
		return fmt.Errorf("others have joined the conversation of %s: they must leave it first (%s)", id, others[0])
	case len(participants) >= maxParticipants:
		return errParticipants
	}
	by, now := audit.From(ctx), time.Now()
	err = o.hub.store.Do(func(tx *store.Tx) error {
		if err := tx.Join(participant.N, conversation); err != nil {
			return err
		}
		if err := o.hub.restrain(tx, participant.N, now); err != nil {
			return err
		}
		n := noticeOf(participant, frame.DeviceJoined, now)
		n.Conversation = conversation
		if err := o.hub.announce(tx, n, participant.N); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.joined", id, "conversation of "+conversation))
	})
	if err != nil {
		return err
	}
	o.hub.sharing.Store(true)
	defer o.hub.tell(participant.UserID, id)
	return errors.Join(o.regroup(ctx, id), o.regroup(ctx, conversation))
}

// Leave gives a device its own conversation again.
func (o *Owner) Leave(ctx context.Context, id string) error {
	o.hub.grouping.Lock()
	defer o.hub.grouping.Unlock()
	participant, err := o.known(ctx, id)
	if err != nil {
		return err
	}
	if participant.Conversation == "" {
		return fmt.Errorf("%s has not joined the conversation of another device", id)
	}
	by := audit.From(ctx)
	err = o.hub.store.Do(func(tx *store.Tx) error {
		if err := tx.Join(participant.N, ""); err != nil {
			return err
		}
		return tx.AddAudit(entryOf(by, "device.left", id, "conversation of "+participant.Conversation))
	})
	if err != nil {
		return err
	}
	return errors.Join(o.regroup(ctx, id), o.regroup(ctx, participant.Conversation))
}

func (o *Owner) known(ctx context.Context, id string) (*store.Device, error) {
	dev, err := o.hub.store.Device(ctx, id)
	if err == nil && dev == nil {
		err = fmt.Errorf("%w (%s)", ErrUnknownDevice, id)
	}
	return dev, err
}

// regroup makes a session read with whom it shares a conversation.
func (o *Owner) regroup(ctx context.Context, id string) error {
	return o.ask(ctx, id, func(d *device, _ *batch, done func(error)) { done(d.regroup()) })
}
