package ratelimit

import "net/netip"

// Network returns what counts as one client: an IPv4 address, or the /64 of an IPv6 address, which
// is what one customer of a provider has. It is the zero Prefix for an invalid address.
func Network(addr netip.Addr) netip.Prefix { return prefix(addr, 32, 64) }

// Region returns the networks that one provider hands out next to each other: the /24 of an IPv4
// address, or the /48 of an IPv6 address. It is the zero Prefix for an invalid address.
func Region(addr netip.Addr) netip.Prefix { return prefix(addr, 24, 48) }

func prefix(addr netip.Addr, bits4, bits6 int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := bits6
	if addr.Is4() {
		bits = bits4
	}
	p, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
