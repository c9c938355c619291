package server

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"hermes-mobile/internal/access"
)

// maxWhy is how many bytes of a reason are logged, since a reason may quote the request.
const maxWhy = 300

// requestFilter rejects requests before they become a connection or a login, and remembers them for
// the doctor.
type requestFilter struct {
	log       *slog.Logger
	addresses *addresses
	origins   []string
	guard     *access.Guard
	rejected  *access.Rejections
	forwarded *access.Rejections // peers that send forwarding headers and aren't trusted
}

func newRequestFilter(log *slog.Logger, a *addresses, origins []string, guard *access.Guard) *requestFilter {
	return &requestFilter{log: log, addresses: a, origins: origins, guard: guard, rejected: access.NewRejections(time.Now), forwarded: access.NewRejections(time.Now)}
}

// note logs a rejected request.
func (f *requestFilter) note(addr netip.Addr, status int, why string) {
	f.log.Warn("request rejected", "addr", addr, "status", status, "reason", why[:min(len(why), maxWhy)])
}

// reject answers a request with an error, logs it, and remembers it for the doctor.
func (f *requestFilter) reject(w http.ResponseWriter, addr netip.Addr, status int, why, message string) {
	f.rejected.Note("", addr, strconv.Itoa(status), why)
	f.note(addr, status, why)
	http.Error(w, message, status)
}

// blocked reports whether an address is blocked after wrong tokens. If so, it sets the header
// Retry-After.
func (f *requestFilter) blocked(w http.ResponseWriter, addr netip.Addr) bool {
	after, blocked := f.guard.Blocked(addr)
	if blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
	}
	return blocked
}

// rejectBlocked rejects a request if its address is blocked.
func (f *requestFilter) rejectBlocked(w http.ResponseWriter, addr netip.Addr) bool {
	if !f.blocked(w, addr) {
		return false
	}
	f.reject(w, addr, http.StatusTooManyRequests, "too many wrong tokens", "Too many wrong tokens came from this address: wait before the next try.")
	return true
}

// noteProxies remembers peers that send forwarding headers and aren't trusted. Most are proxies
// that the owner forgot.
func (f *requestFilter) noteProxies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if access.Forwarded(r.Header) {
			if peer, err := access.Peer(r); err == nil && !f.addresses.proxies.Trusts(peer) {
				f.forwarded.Note("", peer, "forwarded", "")
			}
		}
		next.ServeHTTP(w, r)
	})
}
