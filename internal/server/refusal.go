package server

import (
	"log/slog"
	"net/netip"
)

// maxWhy is how many bytes of a reason are logged, since a reason may quote what was sent.
const maxWhy = 300

// refusalLog logs requests that are rejected before they become a connection.
type refusalLog struct{ log *slog.Logger }

func (l refusalLog) note(addr netip.Addr, status int, why string) {
	l.log.Warn("request rejected", "addr", addr, "status", status, "reason", why[:min(len(why), maxWhy)])
}
