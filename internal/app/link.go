package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// link is the server's agent. It forwards every call to the agent of the current gateway, which
// setup can replace at any time. It is offline while no gateway is set up.
type link struct {
	log       *slog.Logger
	signedOut func() // called when the gateway rejects the credential

	mu      sync.Mutex
	ctx     context.Context
	work    *sync.WaitGroup // nil before begin
	agent   agent.Agent     // the current one; nil: no gateway
	newest  *change         // the next one, until Run starts it
	wake    chan struct{}
	turning map[turn]bool // the open turns
}

// turn identifies the turn of one input.
type turn struct {
	device string
	n      int64
}

// change is a new agent and its client.
type change struct {
	agent  agent.Agent
	client *gateway.Client
}

func newLink(log *slog.Logger, signedOut func()) *link {
	return &link{log: log, signedOut: signedOut, wake: make(chan struct{}, 1), turning: map[turn]bool{}}
}

// begin sets the context and the wait group of the connection checks. Setup in the terminal may
// finish before the app starts. begin then starts the check that replace could not.
func (l *link) begin(ctx context.Context, work *sync.WaitGroup) {
	l.mu.Lock()
	l.ctx, l.work = ctx, work
	early := l.newest
	l.mu.Unlock()
	if early != nil {
		work.Go(func() { l.check(early.client) })
	}
}

// replace makes another agent the current one, as soon as the current one has ended. It connects
// the new agent's client.
func (l *link) replace(client *gateway.Client, agent agent.Agent) {
	next := &change{agent, client}
	l.mu.Lock()
	passed := l.newest
	l.newest = next
	work := l.work
	l.mu.Unlock()
	if passed != nil { // its agent never ran
		_ = passed.client.Close()
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
	if work != nil {
		work.Go(func() { l.check(client) })
	}
}

// check connects a client, and calls signedOut if the gateway rejects the credential.
func (l *link) check(client *gateway.Client) {
	var none *gateway.NoRouteError
	if _, err := client.Connect(l.ctx); errors.As(err, &none) && errors.Is(none.Remote, gateway.ErrSignIn) {
		l.signedOut()
	}
}

// Name implements agent.Agent.
func (l *link) Name() string { return "direct" }

// Run implements agent.Agent.
func (l *link) Run(ctx context.Context, host agent.Host) error {
	end := func() {}
	defer func() {
		end()
		l.mu.Lock()
		left := l.newest
		l.newest = nil
		l.mu.Unlock()
		if left != nil {
			_ = left.client.Close()
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.wake:
		}
		l.mu.Lock()
		taken := l.newest == nil
		l.mu.Unlock()
		if taken { // with the wake before this one: replace ran between that wake and the read of newest
			continue
		}
		end()
		l.mu.Lock()
		next := l.newest
		l.newest = nil
		l.mu.Unlock()
		end = l.run(ctx, next, host)
	}
}

// run starts an agent. It returns a function that stops the agent, closes its client, and ends its
// turns.
func (l *link) run(ctx context.Context, c *change, host agent.Host) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	l.mu.Lock()
	l.agent = c.agent
	l.mu.Unlock()
	go func() {
		defer close(done)
		if err := c.agent.Run(ctx, &watching{Host: host, link: l, of: c}); err != nil && ctx.Err() == nil {
			l.log.Error("agent failed", "err", err)
		}
	}()
	return func() {
		stopping := ctx.Err() != nil // the server stops, and ends the open turns itself
		l.mu.Lock()
		l.agent = nil
		l.mu.Unlock()
		cancel()
		<-done
		_ = c.client.Close()
		l.mu.Lock()
		left := l.turning
		l.turning = map[turn]bool{}
		l.mu.Unlock()
		if stopping {
			return
		}
		for t := range left {
			host.Post(t.device, nil, agent.Done{N: t.n, Interrupted: true})
		}
		host.Changed()
	}
}

// watching is the host of one agent. It keeps the list of open turns, and checks the credential
// when the agent goes offline.
type watching struct {
	agent.Host
	link *link
	of   *change

	mu     sync.Mutex
	online bool
}

// Changed implements agent.Host.
func (w *watching) Changed() {
	w.Host.Changed()
	now := w.of.agent.Status("").Online
	w.mu.Lock()
	left := w.online && !now
	w.online = now
	w.mu.Unlock()
	if left && w.link.ctx.Err() == nil {
		w.link.work.Go(func() { w.link.check(w.of.client) })
	}
}

// Post implements agent.Host.
func (w *watching) Post(device string, done func(error), events ...agent.Event) {
	for _, e := range events {
		if d, ok := e.(agent.Done); ok {
			w.link.ended(device, d.N)
		}
	}
	w.Host.Post(device, done, events...)
}

// ended removes a turn from the open ones.
func (l *link) ended(device string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.turning, turn{device, n})
}

// now returns the current agent, or nil.
func (l *link) now() agent.Agent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.agent
}

// Status implements agent.Agent.
func (l *link) Status(device string) agent.Status {
	if a := l.now(); a != nil {
		return a.Status(device)
	}
	return agent.Status{Detail: "no gateway is set up"}
}

// Hand implements agent.Agent.
func (l *link) Hand(in agent.Input, taken func(error)) {
	l.mu.Lock()
	a := l.agent
	if a != nil {
		l.turning[turn{in.Device, in.N}] = true
	}
	l.mu.Unlock()
	if a == nil {
		taken(agent.ErrAway)
		return
	}
	a.Hand(in, func(err error) {
		if err != nil {
			l.ended(in.Device, in.N)
		}
		taken(err)
	})
}

// Admits implements agent.Agent.
func (l *link) Admits(in agent.Input) bool {
	a := l.now()
	return a != nil && a.Admits(in)
}

// Methods implements agent.Caller.
func (l *link) Methods(device string) []string {
	if c, ok := l.now().(agent.Caller); ok {
		return c.Methods(device)
	}
	return nil
}

// Call implements agent.Caller.
func (l *link) Call(ctx context.Context, call agent.Call) ([]byte, error) {
	if c, ok := l.now().(agent.Caller); ok {
		return c.Call(ctx, call)
	}
	return nil, agent.ErrAway
}

// Stop implements agent.Agent.
func (l *link) Stop(device string) {
	if a := l.now(); a != nil {
		a.Stop(device)
	}
}

// Answer implements agent.Agent.
func (l *link) Answer(card agent.Card, answer agent.Answer, taken func(error)) {
	if a := l.now(); a != nil {
		a.Answer(card, answer, taken)
		return
	}
	taken(agent.ErrAway)
}
