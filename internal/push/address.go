package push

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// special are the IPv4 networks of IANA's registry of special-purpose addresses, besides those that
// netip knows by name. Some of them are reachable from everywhere, but none of them has a push
// service.
var special = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24",
	"198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4")

// global is the IPv6 network that packets may leave to: the unicast addresses that have been
// assigned. All others are local or unused, or a router treats them specially, as it does with
// addresses that embed an IPv4 address.
var global = netip.MustParsePrefix("2000::/3")

// special6 are the networks of IANA's registry within global: Teredo (2001::/32) and others of
// 2001::/23, documentation, 6to4 (which embeds an IPv4 address), AS112.
var special6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20")

// nat64 is the prefix with which a network without IPv4 reaches the public IPv4 internet. Other
// prefixes that embed an IPv4 address (64:ff9b:1::/48, ::/96, ::ffff:0:0:0/96) may lead into a
// private network.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// Public reports whether an address belongs to the public internet. It reports false for unknown
// networks.
func Public(a netip.Addr) bool {
	a = a.Unmap() // ::ffff:a.b.c.d is a.b.c.d, as the system dials it
	switch {
	case !a.IsValid() || a.Zone() != "":
		return false
	case a.Is4():
		return a.IsGlobalUnicast() && !a.IsPrivate() && !within(a, special)
	case nat64.Contains(a):
		return Public(last4(a))
	case !global.Contains(a) || within(a, special6):
		return false
	case isatap(a):
		return Public(last4(a))
	}
	return true
}

// isatap reports whether the lower half of an address embeds the IPv4 address of a tunnel's end
// (RFC 5214).
func isatap(a netip.Addr) bool {
	b := a.As16()
	return b[8]&^0x03 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe // with both values of its universal and group bits
}

// last4 returns the IPv4 address at the end of an IPv6 address.
func last4(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

// forbiddenError reports an address that requests must not go to.
type forbiddenError struct{ addr string }

func (e *forbiddenError) Error() string {
	return fmt.Sprintf("the endpoint is at %s, which is not on the public internet: the owner can list its host in MOBILE_PUSH_HOSTS", e.addr)
}

// hostKey returns the form in which hosts are compared.
func hostKey(host string) string {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

func (s *Sender) listed(host string) bool { return s.hosts[hostKey(host)] }

// dial connects to public addresses, and to those of listed hosts. It checks the address that is
// dialled, after the name was looked up: a name may resolve to another address each time.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: requestTimeout}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !s.listed(host) {
		dialer.Control = func(_, dialled string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(dialled)
			if err != nil || !Public(to.Addr()) {
				return &forbiddenError{to.Addr().String()}
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}
