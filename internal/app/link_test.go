package app

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// standing is an agent that runs.
type standing struct {
	agent.Agent
	runs chan struct{}
}

func (s *standing) Run(ctx context.Context, _ agent.Host) error {
	close(s.runs)
	<-ctx.Done()
	return nil
}

type nobody struct{ agent.Host }

func (nobody) Changed() {}

// If setup finishes before the app runs, the app connects to that gateway and runs its agent.
func TestSetUpBeforeTheAppRuns(t *testing.T) {
	asked := make(chan struct{}, 1)
	g := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	defer g.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	l := newLink(slog.New(slog.DiscardHandler), func() {})
	client, err := gateway.New(gateway.Profile{ID: "p", Name: "p", Remote: g.URL, Auth: gateway.AuthNone, Insecure: true}, gateway.Credentials{}, gateway.Options{})
	ok(t, err)
	agent := &standing{runs: make(chan struct{})}
	l.replace(client, agent)
	l.begin(ctx, &work)
	work.Go(func() { _ = l.Run(ctx, nobody{}) })
	<-asked
	<-agent.runs
}

// If setup makes two agents in quick succession, the link starts the second one at the wake of the
// first. The second wake then finds nothing new, and must not end that agent.
func TestAgentIsNotEndedByALateWake(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	l := newLink(slog.New(slog.DiscardHandler), func() {})
	l.begin(ctx, &work)
	work.Go(func() { _ = l.Run(ctx, nobody{}) })
	client, err := gateway.New(gateway.Profile{ID: "p", Name: "p", Remote: "http://127.0.0.1:1", Auth: gateway.AuthNone, Insecure: true}, gateway.Credentials{}, gateway.Options{})
	ok(t, err)
	agent := &standing{runs: make(chan struct{})}
	l.replace(client, agent)
	<-agent.runs
	for range 3 { // the third is sent when the first was dealt with
		l.wake <- struct{}{}
	}
	if l.now() != agent {
		t.Error("the agent was ended, and there is none")
	}
}
