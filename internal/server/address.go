package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
)

// addresses knows where clients reach the server, and from which address a request comes. It never
// changes.
type addresses struct {
	cfg      *config.Config
	listener net.Addr
	proxies  access.Proxies
	certs    *cert.Certificates // nil: without TLS
}

// certificate returns the state of the server's certificate.
func (a *addresses) certificate() cert.State {
	if a.certs == nil {
		return cert.State{Mode: cert.Off}
	}
	return a.certs.State()
}

// fingerprint returns what phones pin, empty if they need no pin.
func (a *addresses) fingerprint() string {
	if a.certs == nil {
		return ""
	}
	return a.certs.Fingerprint()
}

// scheme returns the scheme of the server itself, without a proxy.
func (a *addresses) scheme() string {
	if a.certs == nil {
		return "http"
	}
	return "https"
}

// endpoint returns the URL of the device endpoint at the listener.
func (a *addresses) endpoint() string {
	return "ws" + strings.TrimPrefix(a.scheme(), "http") + "://" + a.listener.String() + a.cfg.Path
}

// public returns the URL by which other machines reach the server, as far as it knows. local says
// that only this machine does.
func (a *addresses) public() (base string, local bool) {
	if a.cfg.PublicURL != "" {
		return a.cfg.PublicURL, false
	}
	host, port, err := net.SplitHostPort(a.listener.String())
	if err != nil {
		return a.scheme() + "://" + a.listener.String(), true
	}
	ip := net.ParseIP(host)
	if ip != nil && ip.IsUnspecified() {
		if host = interfaceAddress(); host == "" {
			host = "127.0.0.1"
		}
		ip = net.ParseIP(host)
	}
	return a.scheme() + "://" + net.JoinHostPort(host, port), ip != nil && ip.IsLoopback()
}

// interfaceAddress returns an address of this machine that others can reach. It prefers one of a
// private network.
func interfaceAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	other := ""
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || !n.IP.IsGlobalUnicast() {
			continue
		}
		if n.IP.IsPrivate() {
			return n.IP.String()
		}
		if other == "" {
			other = n.IP.String()
		}
	}
	return other
}

// local returns the URL for programs on this machine, such as a gateway. It is empty if plain HTTP
// doesn't reach the server there.
func (a *addresses) local() string {
	host, port, err := net.SplitHostPort(a.listener.String())
	if err != nil {
		return ""
	}
	ip := net.ParseIP(host)
	if ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	} else if a.certs != nil && (ip == nil || !ip.IsLoopback()) {
		return ""
	}
	return "http://" + net.JoinHostPort(host, port)
}

// onLoopback reports whether only programs on this machine reach the listener.
func (a *addresses) onLoopback() bool {
	addr, err := netip.ParseAddrPort(a.listener.String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// port returns the port of the listener.
func (a *addresses) port() string {
	_, port, err := net.SplitHostPort(a.listener.String())
	if err != nil {
		return ""
	}
	return port
}

// base returns the scheme and host by which a client reached the server, for links.
func (a *addresses) base(r *http.Request) string {
	peer, err := access.Peer(r)
	return access.Base(r, err == nil && a.proxies.Trusts(peer))
}

// client returns the address that a request comes from.
func (a *addresses) client(r *http.Request) netip.Addr {
	addr, _ := access.Client(r, a.proxies)
	return addr
}

// clientText returns the address of a request for the log and the status.
func (a *addresses) clientText(r *http.Request) string { return a.client(r).String() }

// sameOrigin reports whether the page that makes a request is of this server. Behind a proxy that
// doesn't send the scheme, the page's origin is the public address of the settings.
func (a *addresses) sameOrigin(r *http.Request) bool {
	return access.SameOrigin(r, a.base(r)) || a.cfg.PublicURL != "" && access.SameOrigin(r, a.cfg.PublicURL)
}
