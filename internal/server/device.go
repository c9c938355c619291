package server

import (
	"fmt"
	"net/http"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/hub"
)

// deviceEndpoint is the WebSocket endpoint for devices. It rejects requests that need not become a
// connection.
type deviceEndpoint struct {
	hub    *hub.Hub
	filter *requestFilter
	probes *probes
}

// ServeHTTP implements http.Handler.
func (d *deviceEndpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addresses := d.filter.addresses
	addr, loopback := access.Client(r, addresses.proxies)
	if d.probes.serve(w, r, loopback) {
		return
	}
	if r.URL.Query().Has("token") {
		d.filter.reject(w, addr, http.StatusBadRequest, "a token in the address",
			"A token in the address isn't accepted, because it would end up in logs. Connect without it and send it in the first frame, hello.")
		return
	}
	if !access.OriginAllowed(r, d.filter.origins) {
		d.filter.reject(w, addr, http.StatusForbidden, fmt.Sprintf("origin %q is not allowed", r.Header.Get("Origin")),
			"Pages of this origin may not connect: the owner can add it to MOBILE_ALLOWED_ORIGINS.")
		return
	}
	if d.filter.rejectBlocked(w, addr) {
		return
	}
	d.hub.Accept(w, r, addr, loopback, addresses.base(r))
}
