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

// Proxies are the peers whose X-Forwarded-For is believed
// (MOBILE_TRUSTED_PROXIES, protocol §1). It is not changed after ParseProxies.
type Proxies []netip.Prefix

// maxHops bounds how much of an X-Forwarded-For is read. Chains of real
// proxies are a few long.
const maxHops = 64

// ParseProxies reads a comma list of addresses and CIDR ranges. Empty stands
// for the loopback ranges, "none" for nobody.
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
			return nil, fmt.Errorf("%q is no address or range (or none alone): %w", item, err)
		}
		proxies = append(proxies, prefix)
	}
	return proxies, nil
}

// parsePrefix reads an address or a range, IPv4 written as IPv6 as IPv4.
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

// Trusts says whether an address is that of a trusted proxy.
func (p Proxies) Trusts(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, prefix := range p {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}

// Client gives the address of who made a request, and whether that is a
// program on this machine (protocol §1).
//
// From a trusted peer the last address in X-Forwarded-For counts that is not
// itself trusted. Where there is none, or what stands right of it is no
// address, the peer counts: an entry is only as good as those after it.
// Headers of other peers change nothing, except that a request with any
// forwarding header is never one of this machine. The address is not valid
// where the peer has none (a Unix socket).
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

// FromHere reports whether a request looks as if a program on this machine had made it, to this machine by its own address: the
// peer is of this machine, no header says that somebody else is behind it, and the Host is exactly one that this listener has
// here. A page of another site whose name was made to point here has its own name in Host. HTTP/1.0 is what a proxy speaks that
// says nothing of itself.
//
// It is no proof: a forwarded connection, and a proxy that changes Host and sends no forwarding header, look the same. Nothing may
// be granted because of it.
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

// localHosts are the Host headers by which programs on this machine reach a listener at one of its addresses.
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

// parseHop reads an entry of X-Forwarded-For; some proxies add the port.
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

// Forwarded says whether a request came through a proxy, by its own account.
func Forwarded(h http.Header) bool {
	for name := range h {
		name = strings.ToLower(name)
		if name == "forwarded" || name == "x-real-ip" || strings.HasPrefix(name, "x-forwarded-") {
			return true
		}
	}
	return false
}

// Base gives the scheme and host by which a client reached this server, for links. Where the headers of the proxy are
// believed, the last X-Forwarded-Proto and X-Forwarded-Host count, which the proxy next to us has set; what is no scheme or
// host of the web does not.
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

// lastItem is the last of a comma list that may be spread over several header lines.
func lastItem(lines []string) string {
	list := strings.Join(lines, ",")
	return strings.TrimSpace(list[strings.LastIndexByte(list, ',')+1:])
}

// Peer gives the address of the other end of a request's connection, whatever its headers say.
func Peer(r *http.Request) (netip.Addr, error) {
	addr, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, err
	}
	return addr.Addr().Unmap(), nil
}
