// Package direct is the agent that talks to Hermes' HTTP API, or to any server with OpenAI's. Each
// conversation is a session of the gateway. Each turn is a run that this process reads to its end,
// so a phone that sleeps stops no task.
//
// Before anything depends on it, the package stores what a restart must not lose (state.go): the
// idempotency key of a turn, its handle, and which approvals were shown. After a restart it resumes
// a turn from there.
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

// Options configure an agent.
type Options struct {
	Client *gateway.Client
	Store  Store
	Files  agent.Files
	Log    *slog.Logger
	// Instance identifies the data folder in idempotency keys, so that a wiped folder does not
	// reuse the keys of an earlier one.
	Instance string
	// Model is for turns if the user chose none and the gateway has no model of its own. Empty
	// means the first model in its list that can chat.
	Model string
	// AllSessions lets every conversation see and continue all sessions of the gateway, and its
	// jobs. Otherwise a conversation sees the sessions that it created.
	AllSessions bool
	// ApprovalTimeout is how long the gateway waits for an answer. 0 means the default of its
	// version.
	ApprovalTimeout time.Duration
	// FindNeighbor returns the gateway's process if it runs on this machine and sees the same
	// files. nil means that it never does.
	FindNeighbor func() (Neighbor, bool)
	// HermesHome is Hermes' home on this machine; only files of its caches are sent to phones. Data
	// is the server's own folder, from which nothing is sent.
	HermesHome, Data string
	// OutcomeTimeout is that of gateway.TurnRequest; 0 means its default.
	OutcomeTimeout time.Duration
}

// Neighbor is a gateway on this machine. Sees reports whether it finds the same file as this
// process at a path.
type Neighbor interface{ Sees(path string) bool }

// Agent implements agent.Agent and agent.Caller. Its methods may be called concurrently.
type Agent struct {
	Options
	memory *memory
	online atomic.Bool
	probe  chan struct{} // asks Run to check the gateway now
	work   sync.WaitGroup

	mu       sync.Mutex
	host     agent.Host
	ctx      context.Context // of Run; nil before it
	closed   bool
	turns    map[string]*turn // by device
	caps     *gateway.Capabilities
	err      error // why the gateway cannot be used; nil before the first check too
	detail   string
	listed   []gateway.Model // models at the last check
	busy     string          // why the gateway accepts no turns now
	neighbor Neighbor        // nil: the gateway has other files
	// credentialErr is the refusal of a turn by a gateway that accepted the credential at the
	// check.
	credentialErr error
}

// State describes the connection to the gateway, for the owner.
type State struct {
	Online  bool
	Version string // of the gateway; empty if unknown
	Older   bool   // the version has the limits that doc/gateway.md lists
	Err     error  // why it cannot be used
}

// State returns the current state.
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

// New returns an agent. It does nothing before Run, and does not close the client.
func New(o Options) *Agent {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Agent{Options: o, memory: newMemory(o.Store, o.Log), probe: make(chan struct{}, 1), turns: map[string]*turn{}, detail: "not connected yet"}
}

// Name implements agent.Agent.
func (a *Agent) Name() string { return "direct" }

const (
	checkEvery = 30 * time.Second // how often a working gateway is checked
	checkLimit = 15 * time.Second
)

// reconnect paces the checks of a gateway that cannot be used.
var reconnect = backoff.Policy{Base: time.Second, Max: 30 * time.Second}

// Run implements agent.Agent: it checks the gateway regularly until ctx ends, then waits for all
// turns.
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
			a.closed = true // no turn starts after this
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
			detail = "OpenAI's API"
		}
		if caps.Version != "" {
			detail += ", version " + caps.Version
		}
		if route, ok := a.Client.Route(); ok && a.Client.Profile().Local != "" {
			detail += ", at the " + string(route.Kind) + " address"
		}
	}
	near := a.currentNeighbor()
	if err == nil && a.FindNeighbor != nil && (near == nil || !near.Sees(a.Data)) { // it was not running, or was restarted
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
			a.Log.Warn("gateway cannot be used", "err", err)
		} else {
			a.Log.Info("gateway connected", "detail", detail)
		}
		a.host.Changed()
	}
	return err == nil
}

// probeNow makes Run check the gateway now.
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

// currentNeighbor returns the gateway's process if it sees the same files as this one, else nil.
func (a *Agent) currentNeighbor() Neighbor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.neighbor
}

// setBusy records why the gateway accepts no turns now; empty means that it does.
func (a *Agent) setBusy(why string) {
	a.mu.Lock()
	changed := a.busy != why
	a.busy = why
	a.mu.Unlock()
	if changed {
		a.host.Changed()
	}
}

// setCredentialErr records that the gateway refused the credential for a turn; nil means that it
// accepted it.
func (a *Agent) setCredentialErr(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.credentialErr = err
}

// capabilities returns what the gateway last advertised; nil before that.
func (a *Agent) capabilities() *gateway.Capabilities {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.caps
}

// Admits implements agent.Agent: input about the running turn passes.
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

// turnOf returns the running turn of a device, nil if there is none.
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

// newer reports whether the gateway is of the newer version of Hermes, told by its features
// (doc/hermes/api.md §0.7).
func newer(caps *gateway.Capabilities) bool {
	return caps != nil && (caps.Feature("runs_idempotency") || caps.Feature("run_steer"))
}

// canStop reports whether turns can be stopped. A server without runs ends a turn with its stream.
func canStop(caps *gateway.Capabilities) bool {
	return caps != nil && (caps.Offers("run_stop") || !caps.Offers("runs") && !caps.Offers("session_chat_stream"))
}

// unreachable reports whether an error means that the gateway cannot be used, rather than that it
// refused a request.
func unreachable(err error) bool {
	return errors.Is(err, gateway.ErrNoRoute) || errors.Is(err, gateway.ErrUnreachable) || errors.Is(err, gateway.ErrSignIn) || errors.Is(err, gateway.ErrIdentity)
}
