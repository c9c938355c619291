package hub

import (
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/store"
)

// device is the session of one device: the queue, and the parts that it is made of. It connects the parts: each of them
// knows only the parts below it.
type device struct {
	session
	core
	hub *Hub

	deliveries   deliveries
	out          outbox
	group        group
	conversation conversation
	uploads      uploads
	probation    probation
	notes        notify.Device
	calls        calls
	intake       intake

	shown   agent.Status // as the device was last told
	offered []string     // methods that the device was last told it may call
	expiry  timer        // of the token that the live connection authenticated with
}

// onDevice is part of an event that is posted by the id of its device (Hub.post).
type onDevice struct{ d *device }

func (o *onDevice) bind(d *device) { o.d = d }

// evDevice is an event that is posted by the id of its device, without weight.
type evDevice struct {
	onDevice
	f func(*device, *batch)
}

func (e *evDevice) apply(b *batch) { e.f(e.d, b) }

// newDevice makes the session of a device. It is loaded with its first event.
func newDevice(h *Hub, id string) *device {
	d := &device{hub: h}
	d.session = session{services: &h.services, parts: d}
	d.core = core{services: &h.services, queue: &d.session, id: id}
	c, n := &d.core, network{h}
	d.deliveries = deliveries{core: c}
	d.out = outbox{core: c, deliveries: &d.deliveries, observer: d}
	d.group = group{core: c, out: &d.out, peers: n, beforeTaking: d.conversation.streams.dropShown}
	d.conversation.init(c, &d.group)
	d.uploads = uploads{core: c}
	d.probation = probation{core: c}
	d.notes = h.notifications.NewDevice(id, d)
	d.calls = calls{core: c, notes: &d.notes, connected: h.connected, revoke: d.revokeOther}
	d.intake = intake{core: c, group: &d.group, conversation: &d.conversation, uploads: &d.uploads, probation: &d.probation, calls: &d.calls}
	return d
}

// load implements parts.
func (d *device) load(b *batch) error {
	dev, err := d.store.Device(d.ctx, d.id)
	if err != nil {
		return err
	}
	if dev == nil {
		d.conversation.turns.avatar = avatarIdle
		return nil
	}
	if err := d.out.load(d.ctx, dev); err != nil {
		return err
	}
	mark, err := d.store.Trail(d.ctx, dev.N)
	if err != nil {
		return err
	}
	if err := d.group.load(dev.Conversation); err != nil {
		return err
	}
	if err := d.notes.Load(d.ctx, dev.N); err != nil {
		return err
	}
	open, err := d.conversation.load(dev)
	if err != nil {
		return err
	}
	d.dev, d.deliveries.mark = dev, mark
	d.notes.Update()
	d.notes.UpdateShown()
	d.conversation.resume(b, open)
	if d.sharing.Load() || d.passed.Load() {
		d.session.run(d.group.take)
	}
	d.probation.steady()
	return nil
}

// idle implements parts.
func (d *device) idle() bool {
	return d.out.idle() && d.conversation.idle() && d.deliveries.idle() && d.group.idle() && d.uploads.idle() &&
		d.probation.idle() && d.notes.Idle() && !d.expiry.running()
}

// leave implements parts.
func (d *device) leave() bool { return d.hub.remove(d) }

// cork implements parts.
func (d *device) cork() (uncork func()) { return d.out.cork() }

// unload makes an idle session the one it was before it was loaded.
func (d *device) unload() {
	d.session.unload()
	d.dev = nil
	d.out.unload()
	d.deliveries.mark, d.deliveries.written = store.Trail{}, 0
	d.group.unload()
	d.conversation.turns.loadedTo = 0
	d.notes.Reset()
}

// stopTimers stops all timers.
func (d *device) stopTimers() {
	d.conversation.stop()
	d.deliveries.close()
	d.group.close()
	d.uploads.old.stop()
	d.probation.close()
	d.notes.Stop()
	d.expiry.stop()
}

// shutdown ends the messages that are being streamed, and stops the timers, because the server stops.
func (d *device) shutdown(b *batch) {
	if d.dev == nil {
		return
	}
	d.conversation.interruptStreams(b)
	b.then(func() {
		d.stopTimers()
		if d.out.conn != nil {
			d.out.noteWritten()
			d.out.noteSent()
			d.deliveries.noteSent()
		}
	})
}

// entryStored implements observer.
func (d *device) entryStored(e *entry) {
	switch {
	case e.Done != nil:
		d.notes.Done(e.Done.PromptID)
	case e.Message != nil, e.Media != nil, e.Prompt != nil, e.Notice != nil:
		d.notes.Update()
	}
}

// entryGiven implements observer.
func (d *device) entryGiven(e *entry) {
	if e.Prompt != nil {
		d.conversation.cards.given(e.Prompt.ID)
	}
	d.group.noteGiven(e)
}

// flushSteps implements observer.
func (d *device) flushSteps() { d.conversation.streams.sendNow() }

// caughtUp implements observer.
func (d *device) caughtUp() { d.conversation.caughtUp(d.out.conn) }

// noteBatch is a batch as package notify sees it.
type noteBatch struct{ *batch }

func (b noteBatch) Do(op func(*store.Tx) error, after func(error)) { b.do(op, after) }
func (b noteBatch) Then(f func())                                  { b.then(f) }
func (b noteBatch) Flush()                                         { b.flush() }

// Post implements notify.Host.
func (d *device) Post(f func(notify.Batch)) {
	d.session.run(func(b *batch) { f(noteBatch{b}) })
}

// State implements notify.Host.
func (d *device) State() notify.State {
	if d.dev == nil {
		return notify.State{Context: d.ctx}
	}
	return notify.State{Context: d.ctx, N: d.dev.N, User: d.dev.UserID, Epoch: d.dev.Epoch, Connected: d.out.conn != nil,
		Muted: d.dev.Revoked || d.closing.Load(), Sent: d.dev.Sent, Floor: d.dev.Floor, Newest: d.out.seq}
}

// Rejected implements notify.Host.
func (d *device) Rejected() bool { return d.rejects(d.dev.Owner()) }

// MayAnswer implements notify.Host.
func (d *device) MayAnswer() bool { return d.probation.answerRefusal() == nil }

// StoreFailed implements notify.Host.
func (d *device) StoreFailed(op string, err error) { d.storeFailed(op, err) }

// agentState returns the agent's state in terms of the protocol.
func agentState(st agent.Status) frame.AgentState {
	if st.Online {
		return frame.Online
	}
	return frame.Away
}

// capabilities returns what the device can do with the agent as it is now.
func (d *device) capabilities(st agent.Status) frame.Capabilities {
	may := d.dev.Rights
	var kinds []string
	if may.Write && st.Images && !st.FilesIn && !st.AnyFile {
		kinds = []string{"image"}
	}
	var at time.Time
	in := 0
	if wait := d.probation.left(time.Now()); wait > 0 && may.Answer {
		at, in = time.Now().Add(wait).UTC().Add(time.Second-1).Truncate(time.Second), seconds(wait)
	}
	return frame.Capabilities{
		Text: may.Write, Audio: may.Write && st.FilesIn, Media: may.Write && (st.FilesIn || st.AnyFile || st.Images), MediaKinds: kinds,
		Prompt:    may.Answer && in == 0 && (st.Prompt || !st.Online), // answers are accepted while the agent is offline, too
		AnswersAt: at, AnswersIn: in,
		Edit: st.Edit, Typing: st.Typing, Avatar: true, Deliver: may.Write,
		Resume: true, Accepted: true, Stop: may.Write && st.Stop, Steer: may.Write && st.Steer, Delta: st.Edit, Tool: st.Tool, MediaURL: st.Files, Push: d.Push != nil, Shared: d.group.shares(), Call: d.offered,
		MaxMediaBytes: d.MaxMedia, MaxFrameBytes: frame.MaxFrame, ChunkBytes: frame.ChunkBytes, MaxParts: frame.MaxParts,
		MinChunkBytes: frame.MinChunk, MaxUploads: frame.MaxUploads, PromptSeconds: int(d.PromptLife.Seconds()),
	}
}

// refresh reads what the agent can do for the device now. It reports whether the device was told something else.
func (d *device) refresh() bool {
	st, methods := d.Agent.Status(d.dev.Talks()), d.calls.methods()
	before := d.shown
	before.Detail = st.Detail // is for the owner
	changed := st != before || !slices.Equal(methods, d.offered)
	d.shown, d.offered = st, methods
	return changed
}

// tellCapabilities tells the device what it can do now, if it is connected.
func (d *device) tellCapabilities() {
	if d.out.conn != nil {
		d.out.conn.send(&frame.CapabilitiesChanged{Capabilities: d.capabilities(d.shown), Agent: agentState(d.shown)})
	}
}

// agentChanged is called when the agent may be able to do other things than before.
func (d *device) agentChanged(b *batch) {
	b.then(func() {
		if d.dev == nil {
			return
		}
		if d.refresh() {
			d.tellCapabilities()
		}
		d.conversation.agentChanged(d.shown.Online)
	})
}

// by returns who acts when the device does: the device, from the address of its connection.
func (d *device) by() audit.By {
	by := audit.By{Actor: audit.ActorDevice(d.id)}
	if d.out.conn != nil {
		by.Origin = d.out.conn.addr.String()
	}
	return by
}
