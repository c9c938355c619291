package access

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Proxies are the peers whose X-Forwarded-For is trusted (MOBILE_TRUSTED_PROXIES, doc/protocol.md
// §1). They never change after ParseProxies.
type Proxies []netip.Prefix

// maxHops bounds how many entries of an X-Forwarded-For are read. Chains of real proxies are a few
// long.
const maxHops = 64

// ParseProxies parses a comma-separated list of addresses and CIDR ranges. An empty list stands for
// the loopback ranges, "none" for no proxy.
func ParseProxies(list string) (Proxies, error) {
	switch strings.TrimSpace(list) {
	case "":
		return Proxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, nil
	case "none":
		return Proxies{}, nil
	}
	var proxies Proxies
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		prefix, err := parsePrefix(item)
		if err != nil {
			return nil, fmt.Errorf("%q is not an address, a CIDR range, or none: %w", item, err)
		}
		proxies = append(proxies, prefix)
	}
	return proxies, nil
}

// parsePrefix parses an address or a range. It converts IPv4 in IPv6 notation to IPv4.
func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		addr, err := netip.ParseAddr(s)
		if err != nil {
			return netip.Prefix{}, err
		}
		addr = addr.Unmap().WithZone("")
		return addr.Prefix(addr.BitLen())
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if addr := prefix.Addr(); addr.Is4In6() && prefix.Bits() >= 96 {
		prefix = netip.PrefixFrom(addr.Unmap(), prefix.Bits()-96)
	}
	return prefix.Masked(), nil
}

// Trusts reports whether an address is that of a trusted proxy.
func (p Proxies) Trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, prefix := range p {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Client returns the address that a request comes from, and whether that is a program on this
// machine (doc/protocol.md §1).
//
// For a trusted peer it is the last address in X-Forwarded-For that isn't itself trusted. It is the
// peer's own address if every entry is trusted, or if an entry further right isn't an address: an
// entry is only as good as those after it. Headers of other peers change nothing, except that a
// request with any forwarding header never counts as one of this machine. The address is invalid if
// the peer has none (a Unix socket).
func Client(r *http.Request, p Proxies) (addr netip.Addr, loopback bool) {
	if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		addr = peer.Addr().Unmap().WithZone("")
	}
	loopback = addr.IsLoopback() && !Forwarded(r.Header)
	if !p.Trusts(addr) {
		return addr, loopback
	}
	rest := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
	for hop := 0; rest != "" && hop < maxHops; hop++ {
		i := strings.LastIndexByte(rest, ',')
		item := strings.TrimSpace(rest[i+1:])
		rest = rest[:max(i, 0)]
		if item == "" {
			continue
		}
		next, ok := parseHop(item)
		if !ok {
			break
		}
		if !p.Trusts(next) {
			return next, false
		}
	}
	return addr, loopback
}

// FromHere reports whether a request looks like one of a program on this machine to this machine's
// own address: the peer is on this machine, no header says that somebody else is behind it, and the
// Host is exactly one of this listener's. A page of another site whose name points here has its own
// name in Host. HTTP/1.0 is what a proxy uses that adds no headers.
//
// It proves nothing: a forwarded connection, and a proxy that changes Host and sends no forwarding
// header, look the same. Never grant anything because of it.
func FromHere(r *http.Request) bool {
	own, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || Forwarded(r.Header) || !r.ProtoAtLeast(1, 1) || len(r.Header.Values("Via")) > 0 {
		return false
	}
	at, err := netip.ParseAddrPort(own.String())
	if err != nil {
		return false
	}
	peer, err := Peer(r)
	if err != nil || !peer.IsLoopback() && peer.WithZone("") != at.Addr().Unmap().WithZone("") {
		return false
	}
	return slices.Contains(localHosts(at, r.TLS != nil), strings.ToLower(r.Host))
}

// localHosts returns the Host headers by which programs on this machine reach a listener at one of
// its addresses.
func localHosts(at netip.AddrPort, encrypted bool) (hosts []string) {
	addr := at.Addr().Unmap().WithZone("")
	names := []string{addr.String()}
	if addr.IsLoopback() {
		names = append(names, "127.0.0.1", "localhost", "::1")
	}
	for _, name := range names {
		hosts = append(hosts, net.JoinHostPort(name, strconv.Itoa(int(at.Port()))))
		if at.Port() == 80 && !encrypted || at.Port() == 443 && encrypted {
			if strings.Contains(name, ":") {
				name = "[" + name + "]"
			}
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// parseHop parses an entry of X-Forwarded-For. Some proxies add the port.
func parseHop(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

// Forwarded reports whether a request has a header of a proxy.
func Forwarded(h http.Header) bool {
	for name := range h {
		name = strings.ToLower(name)
		if name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-") {
			return true
		}
	}
	return false
}

// Base returns the scheme and host by which a client reached this server, for links. For a trusted
// proxy the last X-Forwarded-Proto and X-Forwarded-Host count, which the nearest proxy has set.
// Invalid values don't count.
func Base(r *http.Request, believed bool) string {
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if believed {
		if v := strings.ToLower(lastItem(r.Header.Values("X-Forwarded-Proto"))); v == "https" || v == "http" {
			scheme = v
		}
		if v := lastItem(r.Header.Values("X-Forwarded-Host")); v != "" {
			if u, err := url.Parse("http://" + v); err == nil && u.Host == v && u.Hostname() != "" {
				host = v
			}
		}
	}
	return scheme + "://" + host
}

// lastItem returns the last item of a comma-separated list that may be spread over several header
// lines.
func lastItem(lines []string) string {
	list := strings.Join(lines, ",")
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}

// Peer returns the address of the other end of a request's connection, whatever its headers say.
func Peer(r *http.Request) (netip.Addr, error) {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, err
	}
	return addr.Addr().Unmap(), nil
}
