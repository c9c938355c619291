package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
)

// within is how a program uses a server inside of itself.
type within struct {
	listen func() (net.Listener, error)
	agent  func(Parts) (agent.Agent, error)
	guard  func(http.Handler) http.Handler
	admin  map[string]http.Handler
}

// Option changes a server that a program has within itself.
type Option func(*within)

// Parts are those of the server that an agent stands on.
type Parts struct {
	Files agent.Files
	Log   *slog.Logger
	// Direct makes the agent of a gateway, which the program closes after its Run. scope keeps what it remembers apart from that of another
	// gateway or account.
	Direct func(client *gateway.Client, scope string) agent.Agent
}

// ListeningBy has listen make the listener, in place of the settings' host and port.
func ListeningBy(listen func() (net.Listener, error)) Option {
	return func(w *within) { w.listen = listen }
}

// WithAgent has a function make the agent, in place of the settings'.
func WithAgent(make func(Parts) (agent.Agent, error)) Option {
	return func(w *within) { w.agent = make }
}

// GuardedBy puts a handler before everything that comes over the network. The page knows then that it is the app's own.
func GuardedBy(guard func(http.Handler) http.Handler) Option {
	return func(w *within) { w.guard = guard }
}

// WithAdmin adds a request to the admin interface.
func WithAdmin(pattern string, h http.Handler) Option {
	return func(w *within) {
		if w.admin == nil {
			w.admin = map[string]http.Handler{}
		}
		w.admin[pattern] = h
	}
}

func (s *Server) guarded(next http.Handler) http.Handler {
	if s.within.guard == nil {
		return next
	}
	return s.within.guard(next)
}

// Invite makes a pairing code for a device of a user, which may answer cards at once, for the program that the server is within.
func (s *Server) Invite(ctx context.Context, user string) (Invitation, error) {
	return s.invite(ctx, access.PairingCode{User: user, Trusted: true})
}

// PagePaths are the addresses of the page's files.
func (s *Server) PagePaths() []string { return s.page.Paths() }
