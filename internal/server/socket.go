package server

import (
	"context"
	"log/slog"
	"net"
	"net/http"

	"hermes-mobile/internal/audit"
)

// newSocketServer serves the admin API on the admin socket. It records which user of the machine is
// at the other end of each connection.
func newSocketServer(h http.Handler, log *slog.Logger) *http.Server {
	srv := newHTTPServer(h, log)
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return audit.With(ctx, audit.By{Actor: audit.ActorSocket, Origin: peerUser(c)})
	}
	return srv
}
