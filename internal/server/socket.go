package server

import (
	"context"
	"net"
	"net/http"

	"hermes-mobile/internal/audit"
)

// socketServer serves the admin interface on the admin socket, and notes for each connection which user of the machine is at the
// other end.
func (s *Server) socketServer() *http.Server {
	srv := s.httpServer(s.adminHandler())
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return audit.With(ctx, audit.By{Actor: audit.ActorSocket, Origin: peerUser(c)})
	}
	return srv
}
