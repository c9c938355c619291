package relay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/agent"
)

// helloWithin is how long a gateway has for its hello after it connected.
const helloWithin = 30 * time.Second

// ops are the ops that we announce (doc/hermes/relay.md §3).
var ops = []string{"send", "edit", "typing", "delete", "draft", "prompt", "send_media", "react"}

// maxMessageLength is announced so large that replies are not split: the hub splits them for the device
// (doc/protocol.md §4).
const maxMessageLength = 500_000

// environment is what a gateway needs of the agent. Its functions may be called under the lock of the
// gateway, except serves.
type environment struct {
	now      func() time.Time
	log      *slog.Logger
	count    func(what, gateway string)
	host     func() agent.Host
	run      func(func(ctx context.Context)) bool // runs a function in a goroutine that the agent waits for
	kick     func()                               // has the clock look soon
	serves   func(device string) *gateway         // may ask the hub
	unlink   func(*link)
	learned  func(gateway string, v Version)                // may be nil
	steers   func(ctx context.Context, gateway string) bool // may be nil
	instance string
	files    agent.Files
	links    *fileLinks
	profiles *profiles
}

// gateway is one configured gateway: its parts and its conversations. Its lock is that of seq.
type gateway struct {
	cfg atomic.Pointer[Gateway]
	env environment
	log *slog.Logger

	seq           sequencer
	reports       reports
	wire          wire
	traits        traits
	answers       answers
	queue         queue
	rounds        rounds
	files         fileRoute
	waker         waker
	limited       *rateLog
	conversations conversations

	interrupts bool   // one may be due
	watched    bool   // the clock will look soon by itself
	detail     string // of the last status
}

func newGateway(cfg Gateway, env environment, version Version) *gateway {
	g := &gateway{env: env, log: env.log.With("gateway", cfg.ID)}
	g.cfg.Store(&cfg)
	id := cfg.ID
	count := func(what string) { env.count(what, id) }
	g.limited = newRateLog(g.log, env.now)
	g.seq.after = g.watch
	g.reports = reports{seq: &g.seq, host: env.host, overload: g.wire.overload, gone: g.forget, drained: g.answers.release}
	g.wire = wire{now: env.now, log: g.log, count: count, down: g.down, offlineSince: env.now()}
	g.traits = traits{log: g.log, version: version, learned: g.learned}
	g.answers = answers{now: env.now, limited: g.limited, wire: &g.wire, reports: &g.reports, waiting: map[string]time.Time{}}
	g.queue = queue{now: env.now, log: g.log, count: count, wire: &g.wire, traits: &g.traits, reports: &g.reports, onAck: g.sendInterrupts}
	g.rounds = rounds{now: env.now, wire: &g.wire}
	g.files = fileRoute{config: g.config, seq: &g.seq, log: g.log, run: env.run, files: env.files, links: env.links, wire: &g.wire, traits: &g.traits}
	g.waker = waker{lock: &g.seq, log: g.log, run: env.run, url: func() string { return g.config().WakeURL }, again: wakeAgain}
	p := &parts{
		now: env.now, log: g.log, limited: g.limited, count: count, run: env.run, instance: env.instance, config: g.config,
		seq: &g.seq, reports: &g.reports, wire: &g.wire, traits: &g.traits, answers: &g.answers, queue: &g.queue, rounds: &g.rounds,
		profiles: env.profiles, links: env.links, files: &g.files,
	}
	g.conversations = conversations{now: env.now, all: map[string]*conversation{}, active: map[*conversation]struct{}{}}
	g.conversations.make = func(device string) *conversation { return newConversation(device, p, g.conversations.wake) }
	return g
}

func (g *gateway) config() *Gateway { return g.cfg.Load() }

// watch has the clock look soon if there is something to look at.
func (g *gateway) watch() {
	if !g.watched && g.busy() {
		g.watched = true
		g.env.kick()
	}
}

// busy reports whether the clock has something to look at.
func (g *gateway) busy() bool {
	return len(g.queue.list) > 0 || len(g.answers.waiting) > 0 || len(g.conversations.active) > 0 || g.wire.link != nil && !g.wire.ready
}

// clock looks at everything that depends on time, and reports whether it should look again soon.
func (g *gateway) clock() (busy bool) {
	g.seq.do(func() {
		now := g.env.now()
		if w := &g.wire; w.link != nil && !w.ready && now.Sub(w.connectedAt) > helloWithin {
			g.log.Warn("no hello from the gateway, closing the connection")
			w.close(closeTryLater, "no hello")
		}
		g.queue.clock(now)
		if g.wire.link == nil && len(g.queue.list) > 0 && now.Sub(g.wire.offlineSince) > keepUnacked {
			g.giveBack(true)
		}
		g.answers.expire(now)
		g.conversations.clock(now)
		busy = g.busy()
		g.watched = busy
	})
	return busy
}

// forget drops what is known of a device that is gone.
func (g *gateway) forget(device string) { g.conversations.forget(device) }

// learned remembers the version of the gateway, which decides what devices may do.
func (g *gateway) learned(v Version) {
	if remember := g.env.learned; remember != nil {
		id := g.config().ID
		g.seq.later(func() { remember(id, v) })
	}
	g.reports.changed()
}

// connected makes l the gateway's connection.
func (g *gateway) connected(l *link) {
	g.seq.do(func() {
		if g.wire.retired {
			l.close(closeRestart, "configuration changed")
			return
		}
		g.wire.connect(l)
		g.rounds.reset()
		g.traits.connected()
	})
}

// closed implements linkOwner.
func (g *gateway) closed(l *link, err error) {
	g.env.unlink(l)
	g.seq.do(func() {
		if g.wire.link == l {
			g.log.Info("gateway disconnected", "err", err, "idle", g.wire.idle)
		}
		g.wire.lost(l)
	})
}

// down forgets what belongs to a connection that is over.
func (g *gateway) down() {
	g.queue.reset()
	g.rounds.reset()
	g.answers.reset()
	for _, c := range g.conversations.all {
		c.cards.disconnected()
	}
	g.giveBack(false)
	g.reports.changed()
}

// giveBack returns to the hub what was not sent, all of it or what was never written.
func (g *gateway) giveBack(all bool) {
	g.queue.giveBack(all)
	for c := range g.conversations.active {
		c.inputs.giveBack()
	}
}

// badLine implements linkOwner.
func (g *gateway) badLine(size int) { g.seq.do(func() { g.wire.badLine(size) }) }

// pong implements linkOwner.
func (g *gateway) pong(l *link) {
	g.seq.do(func() {
		if g.wire.link != l {
			return
		}
		stood, more := g.rounds.pong(), false
		for c := range g.conversations.active {
			more = c.inputs.pong(stood) || more
		}
		if more {
			g.rounds.ping()
		}
	})
}

// frame implements linkOwner. It runs in the reader of the socket and never waits.
func (g *gateway) frame(l *link, env *envelope, act *action) {
	var owner *gateway
	if act != nil && act.ChatID != "" {
		owner = g.env.serves(act.ChatID) // may ask the hub: not under the lock
	}
	g.seq.do(func() {
		if g.wire.link != l {
			return // replaced by a newer connection
		}
		switch env.Type {
		case "hello":
			g.hello(env.Platform)
		case "outbound":
			g.outbound(env, act, owner == g)
		case "inbound_ack":
			g.queue.ack(env.BufferID)
		case "going_idle":
			g.goingIdle()
		}
	})
}

// hello answers one of a gateway's names (doc/hermes/relay.md §3). Events may follow, and first of all
// the one that was not acknowledged (§10).
func (g *gateway) hello(name string) {
	if name == "" {
		name = "relay"
	}
	g.traits.addName(name)
	g.wire.send(encode(descriptorFrame{Type: "descriptor", Descriptor: descriptor{
		ContractVersion: 1, Platform: name, Label: "Mobile", MaxMessageLength: maxMessageLength,
		SupportsDraftStreaming: true, SupportsEdit: true, MarkdownDialect: "markdown", LenUnit: "chars",
		Emoji: "\U0001f4f1", SupportedOps: ops,
	}}))
	if !g.wire.hello() {
		return
	}
	g.waker.stop()
	g.askSteers()
	for c := range g.conversations.active {
		c.connected(g.wire.offlineSince, g.wire.helloAt)
	}
	g.sendInterrupts()
	g.queue.pump()
	g.reports.changed()
}

// askSteers finds out whether the gateway adds texts to running turns. The answer comes from its
// settings, which it read when it started.
func (g *gateway) askSteers() {
	if g.env.steers == nil {
		return
	}
	id, l := g.config().ID, g.wire.link
	g.env.run(func(ctx context.Context) {
		steers := g.env.steers(ctx, id)
		g.seq.do(func() {
			if g.wire.link == l && g.traits.steers != steers {
				g.traits.steers = steers
				g.reports.changed()
			}
		})
	})
}

// goingIdle handles the end of the gateway's process (doc/hermes/relay.md §10). Its prompts end with
// it.
func (g *gateway) goingIdle() {
	g.wire.send(encode(struct {
		Type string `json:"type"`
	}{"going_idle_ack"}))
	if g.wire.idle {
		return
	}
	g.wire.idle = true
	g.limited.write(slog.LevelInfo, "gateway stopping or restarting")
	g.traits.processEnds()
	g.conversations.expireCards("")
	for _, c := range g.conversations.all {
		c.inputs.goingIdle()
	}
	for c := range g.conversations.active {
		c.endBy(c.turns.goingIdle())
	}
	g.reports.changed()
}

// outbound handles one op of the gateway (doc/hermes/relay.md §4). Every one is answered. ours says
// whether this gateway serves its device.
func (g *gateway) outbound(env *envelope, a *action, ours bool) {
	if !g.answers.begin(a.requestID) {
		return
	}
	g.traits.saw(a)
	g.traits.proveName(env.Platform)
	if a.fault != "" {
		g.answers.fail(a, a.fault)
		return
	}
	device := a.ChatID
	if !ours {
		g.env.count(CountForeign, g.config().ID)
		g.limited.write(slog.LevelWarn, "op for a device of another gateway", "op", clip(a.Op), "device", clip(device))
		g.answers.fail(a, "this device is not served by this gateway")
		return
	}
	c := g.conversations.all[device]
	switch a.Op {
	case "typing":
		g.answers.interim(a, "")
		if c != nil {
			c.typing()
		}
	case "react":
		g.answers.interim(a, "")
		if c == nil && endsByMark(a) { // after our restart, when nothing was submitted yet
			c = g.conversations.of(device)
		}
		if c != nil {
			c.react(a)
		}
	case "get_chat_info":
		g.answers.give(a.requestID, result{Success: true, ChatInfo: &chatInfo{Name: device, Type: "dm"}})
	case "draft", "edit", "send", "prompt", "send_media":
		if c == nil {
			if c = g.conversations.of(device); c == nil {
				g.answers.fail(a, "too many conversations")
				return
			}
		}
		if nonce := nonceOf(a.PromptID); a.Op == "prompt" && g.traits.process(nonce) {
			g.conversations.expireCards(nonce)
		}
		c.op(a)
		g.conversations.touched(c)
	case "delete":
		g.answers.fail(a, "messages cannot be deleted")
	default:
		g.answers.fail(a, "unsupported op")
	}
}

// submit gives an input of a user to the gateway. ack is called after unlocking.
func (g *gateway) submit(in agent.Input, ack func(error)) {
	g.seq.do(func() {
		c := g.conversations.of(in.Device)
		later := g.acks(ack)
		if c == nil || g.wire.retired {
			later(agent.ErrAway)
			return
		}
		c.submit(in, later)
		g.interrupts = g.interrupts || c.stopDue()
	})
}

// answer tells the gateway how a card was decided. ack is called after unlocking.
func (g *gateway) answer(card agent.Card, st cardState, answer agent.Answer, ack func(error)) {
	g.seq.do(func() {
		c := g.conversations.of(st.Chat)
		later := g.acks(ack)
		if c == nil || !g.wire.online() {
			later(agent.ErrAway)
			return
		}
		c.cards.answer(card, st, answer, later)
	})
}

func (g *gateway) acks(ack func(error)) func(error) {
	return func(err error) { g.seq.later(func() { ack(err) }) }
}

// admits reports whether an input may be submitted while a turn of its conversation runs.
func (g *gateway) admits(in agent.Input) bool {
	g.seq.Lock()
	defer g.seq.Unlock()
	c := g.conversations.all[in.Device]
	return c != nil && c.admits(&in)
}

// stop interrupts the running turn of a device.
func (g *gateway) stop(device string) {
	g.seq.do(func() {
		if c := g.conversations.all[device]; c != nil {
			c.stop()
			g.interrupts = g.interrupts || c.stopDue()
		}
	})
}

// sendInterrupts sends the interrupts that could not be sent before.
func (g *gateway) sendInterrupts() {
	if !g.interrupts {
		return
	}
	g.interrupts = false
	for c := range g.conversations.active {
		if c.stopDue() {
			c.interrupt()
			g.interrupts = g.interrupts || c.stopDue()
		}
	}
}

// profile returns the profile that a conversation uses without a choice.
func (g *gateway) profile(device string) (name string) {
	g.seq.Lock()
	defer g.seq.Unlock()
	if c := g.conversations.all[device]; c != nil {
		name = c.identity.named
	}
	if name == "" {
		return defaultProfile
	}
	return name
}

// configure changes the settings of the gateway.
func (g *gateway) configure(cfg Gateway) {
	if before := g.cfg.Swap(&cfg); before.Secret != cfg.Secret {
		g.seq.do(func() { g.wire.close(closeRestart, "the secret has changed") })
	}
}

// wake begins to wake the gateway unless it is online.
func (g *gateway) wake() {
	g.seq.Lock()
	defer g.seq.Unlock()
	if !g.wire.online() && !g.wire.retired {
		g.waker.start()
	}
}

// retire ends everything: the gateway is not configured any more, or the agent ends.
func (g *gateway) retire(code int, reason string) {
	g.seq.do(func() {
		g.wire.retired = true
		g.waker.stop()
		g.wire.close(code, reason)
		g.giveBack(true)
		if code != closeRevoked {
			return // the hub knows what runs, and submits it again after the restart
		}
		for c := range g.conversations.active {
			c.abandon()
		}
		g.conversations.expireCards("")
	})
}
