package relay

import (
	"context"
	"log/slog"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	keepConversation = 20 * time.Minute // after something last happened in it

	stopGrace = 5 * time.Second
	// stopGraceOlder is shorter: an older gateway says nothing when it stops a turn of which it said
	// nothing.
	stopGraceOlder = 2 * time.Second
)

// parts are what the conversations of one gateway share.
type parts struct {
	now      func() time.Time
	log      *slog.Logger
	limited  *rateLog
	count    func(what string)
	run      func(func(ctx context.Context)) bool // runs a function in a goroutine of the agent
	instance string
	config   func() *Gateway

	seq      *sequencer
	reports  *reports
	wire     *wire
	traits   *traits
	answers  *answers
	queue    *queue
	rounds   *rounds
	profiles *profiles
	links    *fileLinks
	files    *fileRoute
}

// conversation is one conversation with the gateway. It owns its turns with their idle timeout, its
// streams, cards and inputs. Today a device has one. The lock of the gateway must be held.
type conversation struct {
	device  string
	now     func() time.Time
	limited *rateLog
	count   func(what string)
	config  func() *Gateway
	wire    *wire
	traits  *traits
	reports *reports
	answers *answers
	queue   *queue
	links   *fileLinks

	used     time.Time // when something last happened
	identity identity
	turns    turns
	streams  streams
	cards    cards
	inputs   inputs
}

// newConversation returns a conversation that uses the parts of its gateway. wake has the clock look at
// it.
func newConversation(device string, p *parts, wake func(*conversation)) *conversation {
	c := &conversation{
		device: device, now: p.now, limited: p.limited, count: p.count, config: p.config, wire: p.wire, traits: p.traits,
		reports: p.reports, answers: p.answers, queue: p.queue, links: p.links, used: p.now(),
	}
	wakeUp := func() { wake(c) }
	c.identity = identity{device: device, instance: p.instance, config: p.config, traits: p.traits, profiles: p.profiles}
	c.turns = turns{device: device, now: p.now, log: p.log, wire: p.wire, traits: p.traits, reports: p.reports}
	c.streams = streams{device: device, now: p.now, wire: p.wire, traits: p.traits, reports: p.reports, answers: p.answers, turns: &c.turns}
	c.cards = cards{
		device: device, now: p.now, seq: p.seq, run: p.run, config: p.config, traits: p.traits, reports: p.reports,
		answers: p.answers, queue: p.queue, turns: &c.turns, identity: &c.identity, wake: wakeUp, open: map[string]string{},
	}
	c.inputs = inputs{
		device: device, now: p.now, wire: p.wire, traits: p.traits, reports: p.reports, queue: p.queue, files: p.files,
		identity: &c.identity, turns: &c.turns, cards: &c.cards, rest: rest{rounds: p.rounds}, wake: wakeUp,
	}
	return c
}

// busy reports whether the clock must look at the conversation.
func (c *conversation) busy() bool {
	return c.turns.running != nil || len(c.streams.list) > 0 || c.cards.onConfirm != nil
}

// unused reports whether the conversation may be forgotten.
func (c *conversation) unused(now time.Time) bool {
	return !c.busy() && len(c.cards.open) == 0 && now.Sub(c.used) > keepConversation
}

// submit handles an input of the user.
func (c *conversation) submit(in agent.Input, ack func(error)) {
	running := c.turns.running
	switch {
	case in.Handed:
		c.adopt(in)
		ack(nil)
		return
	case isStop(&in) && running != nil:
		ack(nil)
		c.stop()
		c.reports.post(c.device, agent.Done{N: in.N})
		return
	case !c.wire.online():
		ack(agent.ErrAway)
		return
	case running == nil && c.turns.wasMarked(c.identity.mid(in.N)):
		// An earlier run of ours sent it and could not store that, on a full disk for example. A gateway
		// that has it drops it, or, if it was restarted since, does it twice.
		c.adopt(in)
		ack(nil)
		return
	}
	if running != nil && !c.inputs.admits(&in) {
		c.endTurn(true) // the hub has given the turn up, or it would not submit this
	}
	if _, err := c.identity.nextProfile(); c.turns.running == nil && err != nil {
		ack(err)
		return
	}
	c.used = c.now()
	c.identity.person = person{device: in.DeviceName, user: in.User, userName: in.UserName}
	c.inputs.submit(in, ack)
}

// adopt continues the turn of an input that was acknowledged in an earlier run of this process.
func (c *conversation) adopt(in agent.Input) {
	if t := c.turns.running; t != nil {
		if t.n == in.N {
			return
		}
		c.endTurn(true)
	}
	c.used = c.now()
	c.identity.person = person{device: in.DeviceName, user: in.User, userName: in.UserName}
	c.inputs.adopt(in)
}

// admits reports whether an input may be submitted while a turn runs.
func (c *conversation) admits(in *agent.Input) bool {
	return c.turns.running != nil && c.inputs.admits(in)
}

// endTurn ends the running turn and everything that is open of it.
func (c *conversation) endTurn(interrupted bool) {
	t := c.turns.end()
	c.inputs.endTurn(t)
	events := c.streams.endTurn(t, interrupted)
	if t.doubt != "" && !t.stopping {
		c.turns.tellDoubt(t, t.doubt)
	}
	events = append(events, c.cards.endTurn(t)...)
	c.reports.post(c.device, append(events, agent.Done{N: t.n, Interrupted: interrupted})...)
}

func (c *conversation) endBy(e ending) {
	if e != goesOn {
		c.endTurn(e == endsInterrupted)
	}
}

// abandon ends the running turn, if there is one.
func (c *conversation) abandon() {
	if c.turns.running != nil {
		c.endTurn(true)
	}
}

// stop interrupts the running turn (doc/hermes/relay.md §6), or what the gateway does by itself.
func (c *conversation) stop() {
	t := c.turns.running
	switch {
	case t == nil && c.wire.online() && c.now().Sub(c.turns.stray) < strayTyping:
		c.sendInterrupts()
	case t == nil || t.stopping:
	default:
		t.stopping, t.stopDue = true, true
		c.inputs.stop()
		c.interrupt()
	}
}

// stopDue reports whether an interrupt waits to be sent.
func (c *conversation) stopDue() bool { return c.turns.running != nil && c.turns.running.stopDue }

// interrupt sends the interrupt that is due, unless an event has no ack yet: then the gateway would not
// read it anyway.
func (c *conversation) interrupt() {
	t := c.turns.running
	if !t.acked || c.queue.inflight != nil || !c.wire.online() {
		return
	}
	t.stopDue = false
	t.stopBy = c.now().Add(stopGrace)
	if c.traits.version == Older {
		t.stopBy = c.now().Add(stopGraceOlder)
	}
	c.sendInterrupts()
}

func (c *conversation) sendInterrupts() {
	for _, frame := range c.identity.interrupts(c.turns.running) {
		c.wire.send(frame)
	}
}

// clock looks at what depends on time, and reports whether it must look again.
func (c *conversation) clock(now time.Time) (again bool) {
	c.cards.clock(now)
	t := c.turns.running
	if t == nil {
		c.streams.endQuiet(now)
		return c.busy()
	}
	s := sight{cards: len(c.cards.open), inflight: c.queue.inflight != nil, streaming: c.streams.begun(t.mid)}
	c.turns.look(now, s)
	c.inputs.clock(now)
	c.endBy(c.turns.due(now, s))
	return true
}

// connected notes that the gateway is back: it could not be heard meanwhile.
func (c *conversation) connected(since, until time.Time) {
	if t := c.turns.running; t != nil {
		t.pause(since, until)
	}
}
