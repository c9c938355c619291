package cert

import (
	"net"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
)

// dnsName matches names that a certificate may contain.
var dnsName = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$`)

// machineNames returns the known names and addresses of this machine.
func machineNames() []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	if host, err := os.Hostname(); err == nil {
		first, _, _ := strings.Cut(host, ".")
		names = append(names, host, first, first+".local")
	}
	addrs, _ := net.InterfaceAddrs() // on an error, the next check finds the rest
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && (n.IP.IsGlobalUnicast() || n.IP.IsLoopback()) {
			names = append(names, n.IP.String())
		}
	}
	return names
}

// sorted normalizes names and addresses for a certificate, without duplicates and invalid ones.
func sorted(names []string) []string {
	var out []string
	for _, name := range names {
		if a, err := netip.ParseAddr(name); err == nil {
			if !a.IsUnspecified() {
				out = append(out, a.Unmap().WithZone("").String())
			}
		} else if name = strings.TrimSuffix(strings.ToLower(name), "."); len(name) <= 253 && dnsName.MatchString(name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
