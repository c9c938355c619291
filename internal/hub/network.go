package hub

import (
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

// network implements peers: it has the sessions of other devices do what a part asks for.
type network struct{ hub *Hub }

// takeShared implements peers.
func (n network) takeShared(id string) {
	n.hub.run(id, func(d *device, b *batch) { d.group.take(b) })
}

// regroup implements peers.
func (n network) regroup(id string) {
	n.hub.run(id, func(d *device, b *batch) {
		b.flush()
		if d.dev == nil {
			return
		}
		if err := d.regroup(); err != nil {
			d.storeFailed("read a shared conversation", err)
		}
	})
}

// seen implements peers.
func (n network) seen(id string, ids []string, by string) {
	n.hub.run(id, func(d *device, b *batch) {
		b.flush()
		b.then(func() {
			if d.dev != nil {
				d.group.passSeen(ids, by)
				d.notes.Done(ids...)
			}
		})
	})
}

// catchUp implements peers.
func (n network) catchUp(primary, participant string) {
	n.hub.run(primary, func(d *device, b *batch) {
		b.then(func() {
			if d.dev == nil || !slices.Contains(d.group.participants, participant) {
				return
			}
			open := d.conversation.cards.openPrompts()
			n.hub.run(participant, func(p *device, b *batch) { p.group.show(b, open) })
			n.hub.run(participant, indicated(d.conversation.turns.avatar, d.conversation.turns.typing))
			for _, st := range d.conversation.streams.list {
				n.hub.run(participant, stepped(st.say))
			}
		})
	})
}

// wakeRetry is the wait before a session is loaded again that has something to do.
const wakeRetry = 5 * time.Second

// evWake loads a session. If that fails it tries again later: what waits must not wait for somebody to write.
type evWake struct{ onDevice }

func (*evWake) apply(*batch) {}

func (e *evWake) fail(error) { e.d.hub.wakeLater(e.d.id) }

func (h *Hub) wakeLater(id string) {
	time.AfterFunc(wakeRetry, func() {
		if !h.closing.Load() {
			h.post(id, &evWake{})
		}
	})
}

// evParticipantInput: a participant has sent a message to this conversation, which is stored.
type evParticipantInput struct {
	onDevice
	in          agent.Input
	offline     bool // the agent was offline when it was accepted
	participant string
}

func (e *evParticipantInput) fail(error) { e.d.hub.wakeLater(e.d.id) }

func (e *evParticipantInput) apply(b *batch) {
	d := e.d
	d.group.take(b)
	b.then(func() {
		d.group.wake(e.participant)
		if e.in.N > d.conversation.turns.loadedTo { // otherwise it was read from the store
			d.conversation.turns.enter(e.in, e.offline)
		}
	})
}

// input implements peers.
func (n network) input(primary string, in agent.Input, offline bool, participant string) {
	n.hub.post(primary, &evParticipantInput{in: in, offline: offline, participant: participant})
}

// evParticipantAnswer: a participant has answered a card of this conversation.
type evParticipantAnswer struct {
	onDevice
	c      *conn
	f      *frame.Answer
	device int64
	by     frame.Peer
}

func (e *evParticipantAnswer) fail(error) { e.c.send(storeDown(ref(e.f))) }

func (e *evParticipantAnswer) apply(b *batch) { e.d.intake.answerOf(b, e.c, e.f, e.device, e.by) }

// answer implements peers.
func (n network) answer(primary string, c *conn, f *frame.Answer, device int64, by frame.Peer) {
	n.hub.post(primary, &evParticipantAnswer{c: c, f: f, device: device, by: by})
}

// stop implements peers.
func (n network) stop(primary string) {
	n.hub.run(primary, func(d *device, b *batch) { b.then(d.intake.interrupt) })
}

// waits implements peers.
func (n network) waits(id string) *waits {
	if d := n.hub.inMemory(id); d != nil {
		return d.conversation.turns.waits
	}
	return nil
}

// pass has the sessions of devices that are in memory run f.
func (n network) pass(ids []string, f func(*device, *batch)) {
	for _, id := range ids {
		if d := n.hub.inMemory(id); d != nil {
			d.session.post(&evDevice{onDevice{d}, f})
		}
	}
}

// passStep implements peers.
func (n network) passStep(ids []string, s agent.Say) { n.pass(ids, stepped(s)) }

// passIndicators implements peers.
func (n network) passIndicators(ids []string, avatar string, typing bool) {
	n.pass(ids, indicated(avatar, typing))
}

// passTool implements peers.
func (n network) passTool(ids []string, f *frame.Tool) {
	n.pass(ids, func(d *device, b *batch) {
		b.then(func() {
			if d.dev != nil && d.group.reflects() && d.out.conn.tool {
				d.conversation.showTool(f)
			}
		})
	})
}

// stepped shows a step of a message in the primary's conversation.
func stepped(s agent.Say) func(*device, *batch) {
	return func(d *device, b *batch) {
		b.then(func() {
			if d.group.reflects() {
				d.conversation.streams.mirrorStep(s)
			}
		})
	}
}

// indicated shows what the agent does in the primary's conversation.
func indicated(avatar string, typing bool) func(*device, *batch) {
	return func(d *device, b *batch) {
		b.then(func() {
			if d.group.reflects() {
				d.conversation.turns.show(avatar, typing)
			}
		})
	}
}

// regroup reads with whom the device shares a conversation.
func (d *device) regroup() error {
	before := d.group.shares()
	dev, err := d.store.Device(d.ctx, d.id)
	if err != nil || dev == nil {
		return err
	}
	if err := d.group.load(dev.Conversation); err != nil {
		return err
	}
	d.dev.AnswersAt = dev.AnswersAt
	d.probation.steady()
	if dev.Conversation != d.dev.Conversation {
		d.dev.Conversation = dev.Conversation
		d.conversation.unmirror()
		d.disconnect(frame.CloseGoingAway, "this device takes part in another conversation now: connect again")
		return nil
	}
	if d.group.shares() != before {
		d.tellCapabilities()
	}
	return nil
}

// part takes the device out of conversations that it shares. It must be called after Tx.Part.
func (d *device) part() {
	d.group.part()
	d.conversation.unmirror()
}
