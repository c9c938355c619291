package hub

import (
	"errors"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/store"
)

// conversation is one conversation with the agent: its turns, the messages that are being streamed, and its cards. A device
// has one. It touches nothing of the device but the outbox and the group that it is made with.
type conversation struct {
	*core
	group   *group
	streams streams
	cards   cards
	turns   turns
}

// init makes the parts of the conversation.
func (v *conversation) init(c *core, g *group) {
	v.core, v.group = c, g
	v.streams = streams{core: c, out: g.out, group: g, speak: v.turns.speak}
	v.cards = cards{core: c, group: g, alive: v.turns.alive}
	v.turns = turns{core: c, group: g, streams: &v.streams, cards: &v.cards, waits: &waits{}, avatar: avatarIdle}
}

func (v *conversation) idle() bool { return v.turns.idle() && v.streams.idle() && v.cards.idle() }

// load reads what an earlier session left: waiting inputs, cards, and messages that have no end.
func (v *conversation) load(dev *store.Device) (open []store.OpenMessage, err error) {
	v.turns.avatar = avatarIdle
	newest, err := v.store.NewestInput(v.ctx) // before the inbox is read: inputs that are accepted meanwhile come by themselves
	if err != nil {
		return nil, err
	}
	inputs, err := v.store.Inbox(v.ctx, dev.N)
	if err != nil {
		return nil, err
	}
	cards, err := v.store.Cards(v.ctx, dev.N)
	if err != nil {
		return nil, err
	}
	if open, err = v.store.OpenMessages(v.ctx, dev.N); err != nil {
		return nil, err
	}
	v.turns.loadedTo = newest
	for _, e := range inputs {
		if e.N > newest {
			break
		}
		v.turns.load(e)
	}
	for _, row := range cards {
		if err := v.cards.load(row); err != nil {
			v.log.Error("stored card corrupt", "device", v.id, "err", err)
		}
	}
	return open, nil
}

// resume ends the messages that an earlier process began, and goes on with what waits.
func (v *conversation) resume(b *batch, open []store.OpenMessage) {
	for _, m := range open { // it ends with the text there was
		v.streams.final(b, agent.Say{ID: m.ID, Text: m.Text, Final: true, Interrupted: true, ReplyTo: m.ReplyTo}, true)
	}
	b.then(func() { v.turns.next(); v.cards.tell() })
}

// reset forgets everything, as after the device was revoked. A running turn is interrupted.
func (v *conversation) reset() {
	running := v.turns.reset()
	v.streams.reset()
	v.cards.reset()
	if running {
		v.Agent.Stop(v.id)
	}
}

// stop stops the timers.
func (v *conversation) stop() {
	v.turns.close()
	v.streams.close()
	v.cards.close()
}

// interruptStreams ends the messages that are being streamed, because the server stops.
func (v *conversation) interruptStreams(b *batch) {
	for _, st := range v.streams.own() {
		last := st.say
		last.N = 0 // it does not count as said: the turn is submitted again, and its answer must come whole
		v.streams.interrupt(b, last)
	}
}

// agentChanged goes on with what waits, after the agent's status has changed.
func (v *conversation) agentChanged(online bool) {
	v.turns.next() // also if it went offline: it may have to be woken
	if online {
		v.turns.admit()
		v.cards.tell()
	}
}

// quick reports whether events of the agent can be applied without waiting: steps of messages that are stored as begun,
// and signs of life.
func (v *conversation) quick(events []agent.Event) bool {
	for _, ev := range events {
		switch ev := ev.(type) {
		case agent.Say:
			if !v.streams.quick(ev) {
				return false
			}
		case agent.Working, agent.ToolStep:
		default:
			return false
		}
	}
	return true
}

// apply applies an event of the agent.
func (v *conversation) apply(b *batch, ev agent.Event) {
	switch ev := ev.(type) {
	case agent.Say:
		v.streams.say(b, ev)
	case agent.SendFile:
		v.sendFile(b, ev)
	case agent.Ask:
		v.cards.ask(b, ev.Card)
	case agent.CloseCard:
		v.cards.closeByAgent(b, ev)
	case agent.Working:
		b.then(v.turns.work)
	case agent.ToolStep:
		b.then(func() { v.tool(ev) })
	case agent.Given:
		b.do(submission(ev), nil)
	case agent.Done:
		v.turns.done(b, ev)
	}
}

// submission returns what stores that the agent is about to give something to its backend, or that it did not.
func submission(e agent.Given) func(*store.Tx) error {
	return func(tx *store.Tx) error {
		switch {
		case e.Card != "" && !e.Back:
			return tx.Settle(e.Card)
		case e.Card != "":
			return tx.Unsettle(e.Card)
		case !e.Back:
			return tx.HandedOver(e.N)
		}
		return tx.HandedBack(e.N)
	}
}

// sendFile stores a file of the agent for the device.
func (v *conversation) sendFile(b *batch, e agent.SendFile) {
	v.Metrics.FilesOut.Inc()
	kind := e.File.Kind
	if kind == "" {
		kind = "document"
	}
	b.then(v.turns.speak)
	m := &frame.Media{ID: e.ID, Kind: kind, Mime: e.File.Mime, Filename: media.CleanName(e.File.Name), Caption: e.Caption, Size: e.File.Size, ReplyTo: e.ReplyTo, Source: e.Source}
	record, out := none, v.group.out
	if e.Source == frame.SourceCron {
		record = out.deliveries.record(store.Delivery{Source: e.Source, Job: e.Job, Message: e.ID, Queued: out.conn == nil}, out.seq+1)
	}
	v.group.append(b, &entry{Media: m, Hash: e.File.Hash}, func(tx *store.Tx) error {
		if e.N != 0 {
			return errors.Join(record(tx), tx.Said(e.N))
		}
		return record(tx)
	}, nil)
}

// tool shows the use of a tool.
func (v *conversation) tool(e agent.ToolStep) {
	own := v.group.out.conn != nil && v.group.out.conn.tool
	if !own && len(v.group.participants) == 0 {
		return
	}
	f := &frame.Tool{ID: e.ID, Name: e.Name, State: e.State, Title: e.Title, Text: e.Text}
	if in := v.turns.submitted(e.N); in != nil {
		f.Turn = in.ID
	}
	if own {
		v.showTool(f)
	}
	if len(v.group.participants) > 0 {
		v.group.peers.passTool(v.group.participants, f)
	}
}

func (v *conversation) showTool(f *frame.Tool) {
	v.streams.sendNow()
	v.group.out.live(f)
}

// connected is called when a connection has become the live one, with everything up to seq.
func (v *conversation) connected(seq int64) {
	v.streams.connected()
	v.cards.connected(seq)
}

// disconnected is called when the live connection has ended.
func (v *conversation) disconnected() {
	v.streams.flush.stop()
	v.turns.disconnected()
}

// caughtUp tells a connection that lags no more how things stand.
func (v *conversation) caughtUp(c *conn) {
	v.cards.showAgain(c)
	v.group.showCards()
	if !c.told {
		c.told = true
		v.turns.catchUp(c)
	}
	v.streams.send()
}

// unmirror forgets what is shown of another device's conversation.
func (v *conversation) unmirror() {
	v.streams.dropMirrors()
	v.turns.unmirror()
	v.group.cards = nil
}
