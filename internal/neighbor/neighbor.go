// Package neighbor tells whether the program at the other end of a loopback connection is a Hermes gateway that sees the same files as this
// process. An address does not tell: a tunnel, a proxy or a container with the host's network is on the loopback interface, too, and has
// other files behind the same paths.
//
// The kernel knows whose socket it is, on Linux and for programs of the same account. Everywhere else nobody is a neighbor.
package neighbor

import (
	"net/netip"
	"os"
)

// Process is a program on this machine. The zero value is none.
type Process struct {
	pid   int
	since uint64 // when it began, so that another one with its number is not taken for it
}

// Connected returns the gateway that has the other end of a connection, whose ends are local and remote as this process sees them.
func Connected(local, remote netip.AddrPort) (Process, bool) {
	return gateway(func(s socket) bool { return s.local == plain(remote) && s.remote == plain(local) })
}

// Listening returns the gateway that listens at a loopback address.
func Listening(at netip.AddrPort) (Process, bool) {
	at = plain(at)
	if !at.Addr().IsLoopback() {
		return Process{}, false
	}
	return gateway(func(s socket) bool {
		return s.listens && s.local.Port() == at.Port() && (s.local.Addr() == at.Addr() || s.local.Addr().IsUnspecified())
	})
}

// Sees reports whether the program still runs and finds the same file as this process at a path.
func (p Process) Sees(path string) bool {
	theirs, ok := p.root()
	if !ok {
		return false
	}
	ours, err := os.Stat(path)
	if err != nil {
		return false
	}
	there, err := os.Stat(theirs + path)
	return err == nil && os.SameFile(ours, there)
}

// socket is one end of a TCP connection, or where one is waited for.
type socket struct {
	local, remote netip.AddrPort
	listens       bool
	inode         string
}

// plain is an address as both families of the kernel's lists have it.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
