package server

import (
	"net"
	"net/http"
	"net/netip"
	"time"

	"hermes-mobile/internal/ratelimit"
	"hermes-mobile/internal/strangers"
)

// Bounds of connections that have not authenticated.
const (
	maxStrangers       = 1000
	strangersOfNetwork = 64
	strangerMemory     = 32 << 20
	// strangerGrace is enough for a hello on a slow network, and short enough that a flood delays
	// others by little.
	strangerGrace = 500 * time.Millisecond
	// spareFiles are those that connections may not take: the database, files of devices, the
	// gateway and the log need them.
	spareFiles = 128
)

// boundStrangers bounds what connections cost that have not authenticated, and leaves the process
// files to open; limit is how many files it may have, 0: not known.
func (s *Server) boundStrangers(l net.Listener, limit int) *strangers.Listener {
	open := 0
	if limit > 0 {
		open = max(limit-spareFiles, limit/2)
	}
	return strangers.Listen(l, strangers.Options{Total: maxStrangers, PerNetwork: strangersOfNetwork, Memory: strangerMemory, Open: open, Grace: strangerGrace,
		NetworkOf: s.networkOf,
		Changed: func(count int, bytes int64) {
			s.metrics.Strangers.Set(float64(count))
			s.metrics.StrangerBytes.Set(float64(bytes))
		},
		Dropped: func(r strangers.Reason) { s.metrics.StrangersDropped.WithLabelValues(string(r)).Inc() }})
}

// networkOf gives what an address counts as. A trusted proxy stands for many clients; where it says
// no other address, such as for programs of this machine, nothing tells them apart.
func (s *Server) networkOf(addr netip.Addr) (netip.Prefix, bool) {
	if s.proxies.Trusts(addr) {
		return netip.Prefix{}, false
	}
	return ratelimit.Network(addr), true
}

// unambiguous ends connections after requests whose end a proxy may have seen elsewhere: a body
// with Transfer-Encoding, which may have had a Content-Length besides that net/http leaves out, and
// HTTP/1.0, which knows no such bodies. What follows on the connection could be a request that
// somebody has smuggled past the proxy, so it is not read (RFC 9112 section 6.1).
func unambiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
