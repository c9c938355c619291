package relay

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/neighbor"
	"hermes-mobile/internal/wsconn"
)

// Options configure an Agent.
type Options struct {
	Gateways []Gateway
	Files    agent.Files
	Log      *slog.Logger
	// Now returns the time. It is time.Now where nil.
	Now func() time.Time
	// Key makes the addresses of files unguessable. It should outlast a restart.
	Key []byte
	// Instance names this data folder. It goes into the ids of messages, so that a gateway does not
	// take those of a wiped folder for repeats.
	Instance string
	// UserOf returns the user of a device, for Devices lists with "user:<id>". It must not call the
	// agent.
	UserOf func(device string) string
	// From names who sent a request, for log and status: behind a proxy that is not the peer. It is the
	// peer where nil.
	From func(r *http.Request) string
	// Near finds the gateway at the other end of a loopback connection, if it is known to see the same
	// files as this process. It is neighbor.Connected where nil.
	Near func(local, remote netip.AddrPort) (Sees, bool)
	// Profiles returns the names of the profiles that a gateway serves. Fewer than two give no choice.
	// It may read files. None are known where it is nil.
	Profiles func(gateway string) []string
	// Chosen are the profiles that were chosen in earlier runs, by conversation. Choose stores one.
	Chosen map[string]string
	Choose func(ctx context.Context, device, profile string) error
	// Keeper sends the heartbeat of the sockets. Where it is nil, that is left to the gateways.
	Keeper *wsconn.Keeper
	// Known are the versions that were learned in earlier runs, by gateway id. Remember is called when
	// one is learned. It must be quick.
	Known    map[string]Version
	Remember func(id string, v Version)
	// Steers reports whether a gateway that has just connected adds texts to running turns. It may block
	// until ctx ends. No gateway does where it is nil.
	Steers func(ctx context.Context, id string) bool
	// Count is called for things worth counting, with one of the Count constants. It must be quick.
	Count func(what, gateway string)
}

// Agent speaks with all gateways. It implements agent.Agent, agent.Waker and agent.Caller.
type Agent struct {
	log      *slog.Logger
	opt      Options
	env      environment
	links    *fileLinks
	profiles profiles

	routes  atomic.Pointer[routes]
	owners  owners
	setting sync.Mutex // one SetGateways at a time

	wake  chan struct{}
	begun chan struct{}  // closed by Run
	work  sync.WaitGroup // goroutines of run

	mu          sync.Mutex
	host        agent.Host
	ctx         context.Context // of Run; nil before and after
	open        map[*link]struct{}
	lastRefusal *Refusal
	refusedLast map[string]Refusal // by configured id; "": those that could not be identified
	refusals    int64

	tick time.Duration // how often the clock looks while something runs
}

var (
	_ agent.Agent  = (*Agent)(nil)
	_ agent.Waker  = (*Agent)(nil)
	_ agent.Caller = (*Agent)(nil)
)

// closeTimeout is how long gateways have to answer the close frame at the end of Run.
const closeTimeout = 2 * time.Second

// New returns an agent. It does nothing before Run.
func New(o Options) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.From == nil {
		o.From = func(r *http.Request) string { return r.RemoteAddr }
	}
	if o.Near == nil {
		o.Near = func(local, remote netip.AddrPort) (Sees, bool) { return neighbor.Connected(local, remote) }
	}
	if o.Instance == "" {
		o.Instance = "0"
	}
	a := &Agent{
		log: o.Log.With("component", "relay"), opt: o, wake: make(chan struct{}, 1), begun: make(chan struct{}),
		open: map[*link]struct{}{}, refusedLast: map[string]Refusal{}, tick: 100 * time.Millisecond,
		links: newFileLinks(o.Key, o.Now), owners: owners{ask: o.UserOf, now: o.Now},
	}
	a.profiles.served, a.profiles.chosen = map[string][]string{}, map[string]string{}
	maps.Copy(a.profiles.chosen, o.Chosen)
	a.env = environment{
		now: o.Now, log: a.log, count: a.count, host: a.getHost, run: a.run, kick: a.kick, serves: a.serves, unlink: a.unlink,
		learned: o.Remember, steers: o.Steers, instance: o.Instance, files: o.Files, links: a.links, profiles: &a.profiles,
	}
	a.routes.Store(&routes{})
	a.SetGateways(o.Gateways)
	return a
}

// Name implements agent.Agent.
func (a *Agent) Name() string { return "relay" }

func (a *Agent) count(what, gateway string) {
	if a.opt.Count != nil {
		a.opt.Count(what, gateway)
	}
}

// SetGateways replaces the gateways. The connection of a gateway that is not listed any more is closed
// with 4401, after which it never dials again (doc/hermes/relay.md §3). The connection of one with
// another secret is closed with 1012, so that it dials again with that.
func (a *Agent) SetGateways(list []Gateway) {
	a.setting.Lock()
	defer a.setting.Unlock()
	old := a.routes.Load()
	next := newRoutes(list, func(cfg Gateway) *gateway {
		g := old.byID[cfg.ID]
		if g == nil {
			return newGateway(cfg, a.env, a.opt.Known[cfg.ID])
		}
		g.configure(cfg)
		return g
	})
	a.routes.Store(next)
	for id, g := range old.byID {
		if next.byID[id] == nil {
			g.retire(closeRevoked, "unauthorized")
		}
	}
	a.changed()
}

func (a *Agent) changed() {
	if h := a.getHost(); h != nil {
		h.Changed()
	}
}

// serves returns the gateway of a device, or nil. No lock may be held.
func (a *Agent) serves(device string) *gateway { return a.routes.Load().of(device, &a.owners) }

func (a *Agent) getHost() agent.Host {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.host
}

// running returns the context of Run, or nil while it does not run.
func (a *Agent) running() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ctx
}

// Run implements agent.Agent. When ctx ends, all gateways are told 1001, after which they dial again by
// themselves.
func (a *Agent) Run(ctx context.Context, host agent.Host) error {
	a.mu.Lock()
	if a.host != nil {
		a.mu.Unlock()
		return errors.New("relay: Run called twice")
	}
	a.host, a.ctx = host, ctx
	close(a.begun)
	a.mu.Unlock()

	a.tickUntil(ctx)

	a.mu.Lock()
	a.ctx = nil
	links := slices.Collect(maps.Keys(a.open))
	a.mu.Unlock()
	for _, l := range links {
		l.close(closeGoingAway, "going away")
	}
	a.work.Wait()
	for _, g := range a.routes.Load().list {
		g.retire(closeGoingAway, "going away")
	}
	cut := time.AfterFunc(closeTimeout, func() {
		for _, l := range links {
			l.conn.CloseNow()
		}
	})
	defer cut.Stop()
	for _, l := range links {
		<-l.conn.Done()
	}
	return nil
}

// tickUntil is the clock of all gateways.
func (a *Agent) tickUntil(ctx context.Context) {
	timer := time.NewTimer(a.tick)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			timer.Reset(a.tick)
			continue
		case <-timer.C:
		}
		a.refreshProfiles()
		busy := false
		for _, g := range a.routes.Load().list {
			busy = g.clock() || busy
		}
		if busy {
			timer.Reset(a.tick)
		} else {
			timer.Reset(max(time.Second, a.tick))
		}
	}
}

// run runs f in a goroutine that Run waits for. It reports false, and runs nothing, when Run has ended.
func (a *Agent) run(f func(ctx context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	ctx := a.ctx
	a.work.Go(func() { f(ctx) })
	return true
}

// kick has the clock look soon.
func (a *Agent) kick() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// Status implements agent.Agent.
func (a *Agent) Status(device string) agent.Status {
	g := a.serves(device)
	if g == nil {
		return agent.Status{Detail: "no gateway is configured for this device"}
	}
	return g.status()
}

// Hand implements agent.Agent.
func (a *Agent) Hand(in agent.Input, taken func(error)) {
	g := a.serves(in.Device)
	if g == nil || a.running() == nil {
		taken(agent.ErrAway)
		return
	}
	g.submit(in, taken)
}

// Admits implements agent.Agent.
func (a *Agent) Admits(in agent.Input) bool {
	g := a.serves(in.Device)
	return g != nil && g.admits(in)
}

// Stop implements agent.Agent.
func (a *Agent) Stop(device string) {
	if g := a.serves(device); g != nil {
		g.stop(device)
	}
}

// Answer implements agent.Agent.
func (a *Agent) Answer(card agent.Card, answer agent.Answer, taken func(error)) {
	st, err := parseCardState(card.State)
	g := a.routes.Load().byID[st.Gateway]
	switch {
	case err != nil || g == nil:
		// Nobody waits for it any more.
		a.log.Warn("answer dropped: the gateway of its card is not configured", "card", card.ID, "gateway", st.Gateway)
		taken(nil)
	case a.running() == nil:
		taken(agent.ErrAway)
	default:
		g.answer(card, st, answer, taken)
	}
}

// Waits implements agent.Waker.
func (a *Agent) Waits(device string) {
	if g := a.serves(device); g != nil && g.config().WakeURL != "" {
		g.wake()
	}
}

// State describes all gateways.
func (a *Agent) State() State {
	a.mu.Lock()
	s := State{Refusals: a.refusals}
	if a.lastRefusal != nil {
		r := *a.lastRefusal
		s.LastRefusal = &r
	}
	for _, r := range a.refusedLast {
		s.RefusedLast = append(s.RefusedLast, r)
	}
	a.mu.Unlock()
	slices.SortFunc(s.RefusedLast, func(x, y Refusal) int { return y.At.Compare(x.At) })
	for _, g := range a.routes.Load().list {
		s.Gateways = append(s.Gateways, g.state())
	}
	return s
}

// GatewayOf describes the gateway that serves a device. It returns nil if none does.
func (a *Agent) GatewayOf(device string) *GatewayState {
	g := a.serves(device)
	if g == nil {
		return nil
	}
	s := g.state()
	return &s
}
