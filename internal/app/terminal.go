package app

import (
	"context"
	"net/http"
	"strings"
)

// Client returns an HTTP client with the guard's cookie, for a device in this process.
func (a *App) Client() *http.Client {
	return &http.Client{Transport: &inside{guard: a.guard, cookie: a.guard.pass(), next: http.DefaultTransport.(*http.Transport).Clone()}}
}

// inside adds the cookie to requests to the app, and to no other requests.
type inside struct {
	guard  *Guard
	cookie *http.Cookie
	next   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (t *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	if "http://"+r.URL.Host != t.guard.origin || !strings.HasPrefix(r.URL.Scheme, "http") {
		return t.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.AddCookie(t.cookie)
	r.Header.Set("Origin", t.guard.origin)
	return t.next.RoundTrip(r)
}

// CloseIdleConnections closes idle connections.
func (t *inside) CloseIdleConnections() { t.next.CloseIdleConnections() }

// Address returns the WebSocket address for devices.
func (a *App) Address() string { return "ws" + strings.TrimPrefix(a.guard.origin, "http") + "/ws" }

// PairingCode returns a pairing code for a device in this process.
func (a *App) PairingCode(ctx context.Context) (string, error) {
	inv, err := a.server.Invite(ctx, ownUser)
	return inv.Code, err
}
