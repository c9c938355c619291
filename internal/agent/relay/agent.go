package relay

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/neighbor"
	"hermes-mobile/internal/wsconn"
)

// Gateway is one Hermes gateway that may dial in.
type Gateway struct {
	ID     string // GATEWAY_RELAY_ID; may contain colons
	Secret string // GATEWAY_RELAY_SECRET
	Name   string // for people; ID where empty
	// Devices lists whom it serves: device ids, "user:<id>", or "*" for
	// everybody whom no other list names. Empty means "*".
	Devices []string
	// Local says whether the gateway is on this machine and can read our files;
	// nil: an older one is when it dials over loopback without a proxy between,
	// and a newer one, which can also fetch files, when it is known to see them.
	Local *bool
	// PublicURL is where the gateway reaches us, for the addresses of files;
	// empty: the host it dialled.
	PublicURL string
	// WakeURL is asked for while messages wait and the gateway is away; empty: nothing is.
	WakeURL string
}

// Sees tells whether a gateway finds the same file as this process at a path.
type Sees interface{ Sees(path string) bool }

// Options configure an Agent.
type Options struct {
	Gateways []Gateway
	Files    agent.Files
	Log      *slog.Logger
	// Now tells the time; time.Now when nil.
	Now func() time.Time
	// Key makes the addresses of files unguessable; it should outlast a restart.
	Key []byte
	// Instance names this data folder: it goes into the ids of messages, so
	// that those of a wiped folder are not taken for repeats by a gateway.
	Instance string
	// UserOf tells whose device it is, for Devices lists with "user:<id>". It
	// must not call the agent.
	UserOf func(device string) string
	// From names who made a request, for log and status: behind a proxy that is
	// not the peer. The peer when nil.
	From func(r *http.Request) string
	// Near finds the gateway at the other end of a loopback connection, where it
	// is known to see the same files as this process; neighbor.Connected when nil.
	Near func(local, remote netip.AddrPort) (Sees, bool)
	// Profiles are the names of the profiles that a gateway serves; fewer than
	// two: there is nothing to choose. It may read files; nil: none are known.
	Profiles func(gateway string) []string
	// Chosen are the profiles that were chosen in earlier lives, by
	// conversation; Choose stores one.
	Chosen map[string]string
	Choose func(ctx context.Context, device, profile string) error
	// Keeper pings the sockets; nil leaves that to the gateways.
	Keeper *wsconn.Keeper
	// Known are versions that were learnt in an earlier life, by gateway id;
	// Remember is called when one is learnt. It must be quick.
	Known    map[string]Version
	Remember func(id string, v Version)
	// Steers tells whether a gateway that has just connected adds texts to running turns. It may block until ctx ends. Never, when nil.
	Steers func(ctx context.Context, id string) bool
	// Count is called for things worth counting, see the Count constants of
	// metrics.go. It must be quick.
	Count func(what, gateway string)
}

// Agent speaks with all gateways. It implements agent.Agent.
type Agent struct {
	log     *slog.Logger
	opt     Options
	files   agent.Files
	signer  *media.Signer
	routes  atomic.Pointer[routes]
	wake    chan struct{}
	begun   chan struct{} // closed by Run
	setting sync.Mutex    // one SetGateways at a time
	users   sync.Map      // whose a device is, see userOf
	usersN  atomic.Int64
	work    sync.WaitGroup // goroutines that prepare something

	profiles profiles

	mu          sync.Mutex
	host        agent.Host
	ctx         context.Context // of Run; nil before and after
	links       map[*link]struct{}
	lastRefusal *Refusal
	refusedLast map[string]Refusal // by configured id; "": who could not be told
	refusals    int64

	tick      time.Duration // how often the clock looks while something runs
	wakeAgain time.Duration // between the first two requests that wake a gateway
}

var (
	_ agent.Agent  = (*Agent)(nil)
	_ agent.Waker  = (*Agent)(nil)
	_ agent.Caller = (*Agent)(nil)
)

// routes say which gateway serves whom. They are replaced as a whole.
type routes struct {
	byID     map[string]*gateway
	list     []*gateway
	device   map[string]*gateway // exact id, or "user:<id>"
	fallback *gateway            // the first with "*"
	byUser   bool                // there is a "user:<id>"
}

// closePatience is how long gateways have to answer the close at the end of Run.
const closePatience = 2 * time.Second

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
		log: o.Log, opt: o, files: o.Files, wake: make(chan struct{}, 1), begun: make(chan struct{}), links: map[*link]struct{}{}, refusedLast: map[string]Refusal{},
		signer: media.NewSigner(sha256.Sum256(append([]byte("hermes-mobile relay media 1\x00"), o.Key...))),
		tick:   100 * time.Millisecond, wakeAgain: wakeAgain,
	}
	a.profiles.served, a.profiles.chosen = map[string][]string{}, map[string]string{}
	maps.Copy(a.profiles.chosen, o.Chosen)
	a.routes.Store(&routes{})
	a.SetGateways(o.Gateways)
	return a
}

// Name implements agent.Agent.
func (a *Agent) Name() string { return "relay" }

func (a *Agent) now() time.Time { return a.opt.Now() }

func (a *Agent) count(what, gateway string) {
	if a.opt.Count != nil {
		a.opt.Count(what, gateway)
	}
}

// SetGateways replaces the gateways. A connection is closed when its gateway is
// gone from the list, with 4401, after which it never dials again (relay-facts
// §3), or has another secret, with 1012, so that it dials again with that.
func (a *Agent) SetGateways(list []Gateway) {
	a.setting.Lock()
	defer a.setting.Unlock()
	old := a.routes.Load()
	next := &routes{byID: map[string]*gateway{}, device: map[string]*gateway{}}
	for _, cfg := range list {
		if cfg.ID == "" || next.byID[cfg.ID] != nil {
			continue
		}
		if cfg.Name == "" {
			cfg.Name = cfg.ID
		}
		cfg.Devices = slices.Clone(cfg.Devices)
		g := old.byID[cfg.ID]
		if g == nil {
			g = newGateway(a, cfg)
		} else if before := g.cfg.Swap(&cfg); before.Secret != cfg.Secret {
			g.do(func() { g.dropLink(closeRestart, "the secret has changed") })
		}
		next.byID[cfg.ID] = g
		next.list = append(next.list, g)
		if len(cfg.Devices) == 0 {
			cfg.Devices = []string{"*"}
		}
		for _, d := range cfg.Devices {
			if d == "*" {
				if next.fallback == nil {
					next.fallback = g
				}
			} else if next.device[d] == nil {
				next.device[d] = g
				next.byUser = next.byUser || strings.HasPrefix(d, "user:")
			}
		}
	}
	a.routes.Store(next)
	for id, g := range old.byID {
		if next.byID[id] == nil {
			g.retire(closeRevoked, "unauthorized")
		}
	}
	if h := a.getHost(); h != nil {
		h.Changed()
	}
}

// serves returns the gateway of a device, or nil. No lock may be held.
func (a *Agent) serves(device string) *gateway {
	r := a.routes.Load()
	if g := r.device[device]; g != nil {
		return g
	}
	if r.byUser && a.opt.UserOf != nil {
		if u := a.userOf(device); u != "" {
			if g := r.device["user:"+u]; g != nil {
				return g
			}
		}
	}
	return r.fallback
}

// userOf asks whose a device is, and remembers it for a moment: it is asked for
// every op of a gateway.
func (a *Agent) userOf(device string) string {
	type entry struct {
		user string
		at   time.Time
	}
	now := a.now()
	if e, ok := a.users.Load(device); ok && now.Sub(e.(entry).at).Abs() < keepUser {
		return e.(entry).user
	}
	u := a.opt.UserOf(device)
	if a.usersN.Add(1) > maxUsers {
		a.usersN.Store(0)
		a.users.Clear()
	}
	a.users.Store(device, entry{u, now})
	return u
}

const (
	keepUser = 10 * time.Second
	maxUsers = 10_000
)

func (a *Agent) getHost() agent.Host {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.host
}

// running returns the context of Run, nil when it does not run.
func (a *Agent) running() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ctx
}

// Run implements agent.Agent. When ctx ends all gateways are told 1001, after
// which they dial again by themselves.
func (a *Agent) Run(ctx context.Context, host agent.Host) error {
	a.mu.Lock()
	if a.host != nil {
		a.mu.Unlock()
		return errors.New("relay: Run called twice")
	}
	a.host, a.ctx = host, ctx
	close(a.begun)
	a.mu.Unlock()

	timer := time.NewTimer(a.tick)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			continue
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

	a.mu.Lock()
	a.ctx = nil
	links := make([]*link, 0, len(a.links))
	for l := range a.links {
		links = append(links, l)
	}
	a.mu.Unlock()
	for _, l := range links {
		l.close(closeGoingAway, "going away")
	}
	a.work.Wait()
	for _, g := range a.routes.Load().list {
		g.retire(closeGoingAway, "going away")
	}
	cut := time.AfterFunc(closePatience, func() {
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

// goDo runs f in a goroutine that Run waits for. It reports false, and runs
// nothing, when Run is over.
func (a *Agent) goDo(f func(ctx context.Context)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx == nil {
		return false
	}
	ctx := a.ctx
	a.work.Go(func() { f(ctx) })
	return true
}

// kick makes the clock look soon.
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
	g.hand(in, taken)
}

// Admits implements agent.Agent.
func (a *Agent) Admits(in agent.Input) bool {
	g := a.serves(in.Device)
	return g != nil && g.admits(in)
}

// Stop implements agent.Agent.
func (a *Agent) Stop(device string) {
	if g := a.serves(device); g != nil {
		g.do(func() {
			c := g.convos[device]
			switch {
			case c == nil:
			case c.turn != nil:
				g.stopTurn(c)
			case g.online() && a.now().Sub(c.stray) < strayTyping:
				g.sendInterrupt(c) // the gateway works by itself
			}
		})
	}
}

// Answer implements agent.Agent.
func (a *Agent) Answer(card agent.Card, answer agent.Answer, taken func(error)) {
	st, err := parseCardState(card.State)
	g := a.routes.Load().byID[st.Gateway]
	switch {
	case err != nil || g == nil:
		// Nobody waits for it any more.
		a.log.Warn("relay: a card's gateway is not configured", "card", card.ID, "gateway", st.Gateway)
		taken(nil)
	case a.running() == nil:
		taken(agent.ErrAway)
	default:
		g.answerCard(card, st, answer, taken)
	}
}
