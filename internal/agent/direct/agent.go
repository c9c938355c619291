// Package direct is the agent behind which stands Hermes' HTTP API, or any server that speaks OpenAI's: each conversation
// is a session of the gateway, and each turn a run that is read to its end here, so a phone that sleeps kills no task.
//
// What a restart must not forget is written down before anything depends on it (state.go): the key under which a turn is
// started, its lease, and which approvals were shown. A turn of an earlier life is taken up from there.
package direct

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/backoff"
)

// Options are what an agent is made of.
type Options struct {
	Client *gateway.Client
	Store  Store
	Files  agent.Files
	Log    *slog.Logger
	// Instance names this data folder in the keys of turns, so that a wiped folder does not repeat those of an earlier one.
	Instance string
	// Model is what turns use where the user chose none and the gateway has no model of its own; empty: the first of its list that
	// can chat.
	Model string
	// AllSessions lets each conversation see and continue every session of the gateway, and its jobs. Else it sees those
	// that it began.
	AllSessions bool
	// ApprovalLife is how long the gateway waits for an answer; 0: as its version does unless its owner set another.
	ApprovalTimeout time.Duration
	// Near finds the gateway's process where it runs on this machine and is known to see the same files; nil: it never is.
	FindNeighbor func() (Neighbor, bool)
	// HermesHome is Hermes' home on this machine, of which only the caches are sent to phones, and Data the server's own, of which nothing is.
	HermesHome, Data string
	// Patience is gateway.TurnRequest's; 0: as that package has it.
	OutcomeTimeout time.Duration
}

// Sees tells whether a gateway finds the same file as this process at a path.
type Neighbor interface{ Sees(path string) bool }

// Agent implements agent.Agent and agent.Caller.
type Agent struct {
	Options
	memory *memory
	online atomic.Bool
	probe  chan struct{} // the route is in doubt
	work   sync.WaitGroup

	mu       sync.Mutex
	host     agent.Host
	ctx      context.Context // of Run; nil before
	closed   bool
	turns    map[string]*turn // by device
	caps     *gateway.Capabilities
	err      error // why the gateway cannot be used; nil before the first look, too
	detail   string
	listed   []gateway.Model // models, when it was looked at last
	busy     string          // why it takes no turns now
	neighbor Neighbor        // nil: the gateway has other files
	// refusedKey is why it took the key when it was looked at, and refused it for a turn.
	credentialErr error
}

// State is what the owner is told of the way to the gateway.
type State struct {
	Online  bool
	Version string // of the gateway, as far as it is known
	Older   bool   // it is of the version whose limits doc/gateway.md has
	Err     error  // why it cannot be used
}

// State returns how things are.
func (a *Agent) State() State {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := State{Online: a.online.Load(), Err: cmp.Or(a.err, a.credentialErr)}
	if a.caps != nil {
		s.Version, s.Older = a.caps.Version, a.caps.Offers("runs") && !newer(a.caps)
	}
	return s
}

var (
	_ agent.Agent  = (*Agent)(nil)
	_ agent.Caller = (*Agent)(nil)
)

// New returns an agent. It does nothing before Run, and leaves the client to its owner.
func New(o Options) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agent{Options: o, memory: newMemory(o.Store, o.Log), probe: make(chan struct{}, 1), turns: map[string]*turn{}, detail: "not connected yet"}
}

// Name implements agent.Agent.
func (a *Agent) Name() string { return "direct" }

const (
	checkEvery = 30 * time.Second // how often a quiet gateway is looked at
	checkLimit = 15 * time.Second
)

// reconnect paces the probes of a gateway that cannot be used.
var reconnect = backoff.Policy{Base: time.Second, Max: 30 * time.Second}

// Run implements agent.Agent: it keeps the way to the gateway known.
func (a *Agent) Run(ctx context.Context, host agent.Host) error {
	a.mu.Lock()
	a.ctx, a.host = ctx, host
	a.mu.Unlock()
	host.Changed()
	wait, failures := time.Duration(0), 0
	for {
		select {
		case <-time.After(wait):
		case <-a.probe:
		case <-ctx.Done():
			a.mu.Lock()
			a.closed = true // no turn begins after this
			a.mu.Unlock()
			a.work.Wait()
			return nil
		}
		if a.check(ctx) {
			wait, failures = checkEvery, 0
		} else {
			wait, failures = reconnect.Delay(failures), failures+1
		}
	}
}

// check finds out whether the gateway can be used.
func (a *Agent) check(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	var caps *gateway.Capabilities
	models, err := a.Client.Models.List(ctx)
	if err == nil || errors.Is(err, gateway.ErrUnavailable) {
		caps, err = a.Client.Capabilities(ctx)
	}
	detail := ""
	switch {
	case err != nil:
		detail = plainText(err)
	default:
		detail = "Hermes' API"
		if !caps.Offers("runs") && !caps.Offers("session_chat_stream") {
			detail = "an API like OpenAI's"
		}
		if caps.Version != "" {
			detail += ", version " + caps.Version
		}
		if route, ok := a.Client.Route(); ok && a.Client.Profile().Local != "" {
			detail += ", by the " + string(route.Kind) + " address"
		}
	}
	near := a.currentNeighbor()
	if err == nil && a.FindNeighbor != nil && (near == nil || !near.Sees(a.Data)) { // it was not there, or was started anew
		near, _ = a.FindNeighbor()
	}
	a.mu.Lock()
	changed := a.online.Swap(err == nil) != (err == nil) || a.detail != detail
	if err == nil {
		changed = changed || (a.neighbor == nil) != (near == nil)
		a.caps, a.listed, a.neighbor = caps, models, near
	}
	a.err, a.detail = err, detail
	a.mu.Unlock()
	if changed {
		if err != nil {
			a.Log.Warn("the gateway cannot be used", "error", err)
		} else {
			a.Log.Info("the gateway can be used", "detail", detail)
		}
		a.host.Changed()
	}
	return err == nil
}

// doubt has the way to the gateway looked at now.
func (a *Agent) probeNow() {
	select {
	case a.probe <- struct{}{}:
	default:
	}
}

// Status implements agent.Agent.
func (a *Agent) Status(string) agent.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := agent.Status{Online: a.online.Load() && !a.closed, Edit: true, Typing: true, Files: true, Detail: a.detail}
	if a.busy != "" {
		s.Detail += "; busy: " + a.busy
	}
	if a.caps != nil {
		s.Prompt = a.caps.Offers("run_approval")
		s.Stop = canStop(a.caps)
		s.Steer = a.caps.Offers("run_steer")
		s.Tool = a.caps.Feature("tool_progress_events")
		s.Images = a.caps.Offers("session_chat_stream") || a.caps.Offers("chat_completions")
	}
	s.AnyFile = a.neighbor != nil && s.Images
	return s
}

// beside is the gateway's process where it sees the same files as this one, nil where it does not.
func (a *Agent) currentNeighbor() Neighbor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.neighbor
}

// setBusy notes why the gateway takes no turns now; empty: it does.
func (a *Agent) setBusy(why string) {
	a.mu.Lock()
	changed := a.busy != why
	a.busy = why
	a.mu.Unlock()
	if changed {
		a.host.Changed()
	}
}

// setRefused notes that the gateway refused the credential for a turn; nil: it took it.
func (a *Agent) setCredentialErr(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.credentialErr = err
}

// capabilities are what the gateway last said of itself; nil before it said anything.
func (a *Agent) capabilities() *gateway.Capabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.caps
}

// Admits implements agent.Agent: what is about the running turn passes.
func (a *Agent) Admits(in agent.Input) bool {
	c, _ := command(in)
	return c != nil && c.outOfBand || c == nil && a.joins(in) != nil
}

// Hand implements agent.Agent.
func (a *Agent) Hand(in agent.Input, taken func(error)) {
	a.mu.Lock()
	if a.ctx == nil || a.closed || !a.online.Load() {
		a.mu.Unlock()
		taken(agent.ErrAway)
		return
	}
	defer a.mu.Unlock()
	c, _ := command(in)
	if t := a.turns[in.Device]; c == nil && in.Joins != 0 && t != nil && t.in.N == in.Joins {
		ctx := a.ctx
		a.work.Add(1)
		go func() {
			defer a.work.Done()
			t.add(ctx, &addition{in: in, taken: taken})
		}()
		return
	}
	if in.Joins != 0 {
		taken(agent.ErrOwnTurn)
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	t := newTurn(ctx, a, in, taken)
	if c == nil || !c.outOfBand {
		a.turns[in.Device] = t
	}
	a.work.Add(1)
	go func() {
		defer a.work.Done()
		defer cancel()
		t.run()
		a.mu.Lock()
		if a.turns[in.Device] == t {
			delete(a.turns, in.Device)
		}
		a.mu.Unlock()
	}()
}

// turnOf is the running turn of a device, nil where there is none.
func (a *Agent) turnOf(device string) *turn {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turns[device]
}

// Stop implements agent.Agent.
func (a *Agent) Stop(device string) {
	if t := a.turnOf(device); t != nil {
		t.stop()
	}
}

// Answer implements agent.Agent.
func (a *Agent) Answer(card agent.Card, answer agent.Answer, taken func(error)) {
	a.mu.Lock()
	if a.ctx == nil || a.closed {
		a.mu.Unlock()
		taken(agent.ErrAway)
		return
	}
	defer a.mu.Unlock()
	ctx := a.ctx
	var t *turn
	for _, running := range a.turns {
		if running.in.N == card.N {
			t = running
		}
	}
	a.work.Add(1)
	go func() {
		defer a.work.Done()
		taken(a.answer(ctx, t, card, answer))
	}()
}

// newer reports whether it is the newer version of Hermes, which is told by what it offers (api-facts §0.7).
func newer(caps *gateway.Capabilities) bool {
	return caps != nil && (caps.Feature("runs_idempotency") || caps.Feature("run_steer"))
}

// stops reports whether turns can be stopped: a gateway without runs ends a turn with its stream.
func canStop(caps *gateway.Capabilities) bool {
	return caps != nil && (caps.Offers("run_stop") || !caps.Offers("runs") && !caps.Offers("session_chat_stream"))
}

// away reports whether an error means that the gateway cannot be reached, rather than that it refused.
func unreachable(err error) bool {
	return errors.Is(err, gateway.ErrNoRoute) || errors.Is(err, gateway.ErrUnreachable) || errors.Is(err, gateway.ErrSignIn) || errors.Is(err, gateway.ErrIdentity)
}
