package server

import (
	"log/slog"
	"net"
	"net/http"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// embedding is how a program uses a server inside itself.
type embedding struct {
	listen func() (net.Listener, error)
	agent  func(Parts) (agent.Agent, error)
	guard  func(http.Handler) http.Handler
	admin  map[string]http.Handler
}

// Option changes a server that a program embeds.
type Option func(*embedding)

// Parts are the parts of the server that an agent needs.
type Parts struct {
	Files agent.Files
	Log   *slog.Logger
	// Direct returns the agent of a gateway. The program closes the client after its Run. scope
	// separates the agent's memory from that of another gateway or account.
	Direct func(client *gateway.Client, scope string) agent.Agent
}

// ListeningBy replaces the host and port of the settings with a listener of the program.
func ListeningBy(listen func() (net.Listener, error)) Option {
	return func(e *embedding) { e.listen = listen }
}

// WithAgent replaces the agent of the settings with one of the program.
func WithAgent(make func(Parts) (agent.Agent, error)) Option {
	return func(e *embedding) { e.agent = make }
}

// GuardedBy wraps everything that the server serves over the network. The web page then knows that
// it belongs to the app.
func GuardedBy(guard func(http.Handler) http.Handler) Option {
	return func(e *embedding) { e.guard = guard }
}

// WithAdmin adds a request to the admin API.
func WithAdmin(pattern string, h http.Handler) Option {
	return func(e *embedding) {
		if e.admin == nil {
			e.admin = map[string]http.Handler{}
		}
		e.admin[pattern] = h
	}
}

func (e *embedding) guarded(next http.Handler) http.Handler {
	if e.guard == nil {
		return next
	}
	return e.guard(next)
}
