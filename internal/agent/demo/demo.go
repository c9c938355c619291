// Package demo is the scripted agent. It shows every feature in the first minute without a Hermes, and any
// client can be tested with it. doc/demo-agent.md describes each line of its script.
package demo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"hermes-mobile/internal/agent"
)

// Agent is the scripted agent. It implements agent.Agent.
type Agent struct {
	files agent.Files
	log   *slog.Logger

	mu      sync.Mutex
	host    agent.Host
	ctx     context.Context
	turns   map[string]*turn  // by device
	profile map[string]string // of conversations that have asked for profiles
	away    bool
	closed  bool
	work    sync.WaitGroup
}

// New returns an agent that stores its files in files. It does nothing before Run.
func New(files agent.Files, log *slog.Logger) *Agent {
	return &Agent{files: files, log: log, turns: map[string]*turn{}, profile: map[string]string{}}
}

// Name implements agent.Agent.
func (a *Agent) Name() string { return "demo" }

// Run implements agent.Agent.
func (a *Agent) Run(ctx context.Context, host agent.Host) error {
	a.mu.Lock()
	a.ctx, a.host = ctx, host
	a.mu.Unlock()
	host.Changed()
	<-ctx.Done()
	a.mu.Lock()
	a.closed = true // no turn begins after this
	a.mu.Unlock()
	a.work.Wait()
	return nil
}

// Status implements agent.Agent.
func (a *Agent) Status(string) agent.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	detail := "the built-in scripted agent"
	if a.away {
		detail = "offline because /demo away asked for it"
	}
	return agent.Status{Online: a.host != nil && !a.away, Edit: true, Typing: true, Prompt: true, Stop: true, Steer: true, Tool: true, FilesIn: true, Files: true, Detail: detail}
}

// Admits implements agent.Agent. A second message waits for its turn unless it joins the running one.
func (a *Agent) Admits(in agent.Input) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.turns[in.Device]
	return t != nil && in.Joins == t.in.N && in.Kind == agent.Text
}

// Hand implements agent.Agent.
func (a *Agent) Hand(in agent.Input, ack func(error)) {
	a.mu.Lock()
	if a.ctx == nil || a.closed || a.away {
		a.mu.Unlock()
		ack(agent.ErrAway)
		return
	}
	if in.Joins != 0 {
		t := a.turns[in.Device]
		a.mu.Unlock()
		if t == nil || t.in.N != in.Joins || !t.add(in.Text) {
			ack(agent.ErrOwnTurn)
			return
		}
		ack(nil)
		a.post(in.Device, agent.Done{N: in.N})
		return
	}
	ctx, stop := context.WithCancel(a.ctx)
	t := &turn{agent: a, in: in, ctx: ctx, stop: stop, skip: in.Texts, answers: make(chan answered, 8)}
	a.turns[in.Device] = t
	a.work.Add(1)
	a.mu.Unlock()
	ack(nil)
	go func() {
		defer a.work.Done()
		defer stop()
		t.run()
		a.mu.Lock()
		if a.turns[in.Device] == t {
			delete(a.turns, in.Device)
		}
		a.mu.Unlock()
		t.rest()
	}()
}

// Stop implements agent.Agent.
func (a *Agent) Stop(device string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.turns[device]; t != nil {
		t.stopped.Store(true)
		t.stop()
	}
}

// Answer implements agent.Agent.
func (a *Agent) Answer(card agent.Card, answer agent.Answer, ack func(error)) {
	a.mu.Lock()
	for _, t := range a.turns {
		if t.in.N != card.N {
			continue
		}
		select {
		case t.answers <- answered{card, answer, ack}:
			a.mu.Unlock()
			return
		default:
		}
	}
	a.mu.Unlock()
	ack(nil) // its turn has ended: nobody waits for it
}

// goAway takes the agent offline for a while.
func (a *Agent) goAway(d time.Duration) {
	a.mu.Lock()
	a.away = true
	a.mu.Unlock()
	a.host.Changed()
	a.after(d, func() {
		a.mu.Lock()
		a.away = false
		a.mu.Unlock()
		a.host.Changed()
	})
}

// after runs f after d, unless the agent ends before.
func (a *Agent) after(d time.Duration, f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.work.Add(1)
	go func() {
		defer a.work.Done()
		if pause(a.ctx, d) {
			f()
		}
	}()
}

// pause waits for d. It reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (a *Agent) post(device string, events ...agent.Event) {
	a.host.Post(device, func(err error) {
		if err != nil {
			a.log.Debug("events not stored", "component", "demo", "device", device, "err", err)
		}
	}, events...)
}
