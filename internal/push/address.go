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

// closed are the networks that are no part of the public internet, besides those that netip knows by name.
var closed = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"240.0.0.0/4", "::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10")

// embedding are the networks whose addresses hold one of IPv4, and at which byte it stands.
var embedding = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2}

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, p := range list {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// public reports whether an address belongs to the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.IsUnspecified() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() ||
		slices.ContainsFunc(closed, func(p netip.Prefix) bool { return p.Contains(a) }) {
		return false
	}
	for p, at := range embedding {
		if p.Contains(a) {
			b := a.As16()
			return public(netip.AddrFrom4([4]byte(b[at : at+4])))
		}
	}
	return true
}

// forbiddenError: an address that requests may not go to.
type forbiddenError struct{ addr string }

func (e *forbiddenError) Error() string {
	return fmt.Sprintf("the endpoint is at %s, which is no address of the public internet: the owner can list its host in MOBILE_PUSH_HOSTS", e.addr)
}

// hostKey is how a host is compared.
func hostKey(host string) string {
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().String()
	}
	return host
}

func (s *Sender) listed(host string) bool { return s.hosts[hostKey(host)] }

// dial connects to public addresses, and to those of listed hosts. What counts is the address that is dialled, after its
// name was looked up: a name may stand for another address each time.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: requestTimeout}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !s.listed(host) {
		dialer.Control = func(_, dialled string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(dialled)
			if err != nil || !public(to.Addr()) {
				return &forbiddenError{to.Addr().String()}
			}
			return nil
		}
	}
	return dialer.DialContext(ctx, network, address)
}
