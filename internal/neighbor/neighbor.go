// Package neighbor finds out whether the program at the other end of a loopback connection is a Hermes
// gateway that sees the same files as this process. Its address does not show that: a tunnel, a proxy or a
// container with the host's network is also on the loopback interface, and has other files at the same
// paths.
//
// The kernel knows which process has a socket, on Linux and for programs of the same account. On other
// systems no program is a neighbor.
package neighbor

import (
	"net/netip"
	"os"
)

// Process is a program on this machine. The zero value is no program.
type Process struct {
	pid   int
	since uint64 // when it began, so that a later process with the same pid is not taken for it
}

// Connected returns the gateway at the other end of a connection. local and remote are the ends of the
// connection as this process sees them.
func Connected(local, remote netip.AddrPort) (Process, bool) {
	return gateway(func(s socket) bool { return s.local == plain(remote) && s.remote == plain(local) })
}

// Listening returns the gateway that listens on a loopback address.
func Listening(at netip.AddrPort) (Process, bool) {
	at = plain(at)
	if !at.Addr().IsLoopback() {
		return Process{}, false
	}
	return gateway(func(s socket) bool {
		return s.listens && s.local.Port() == at.Port() && (s.local.Addr() == at.Addr() || s.local.Addr().IsUnspecified())
	})
}

// Sees reports whether the program still runs, and finds the same file as this process at a path.
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

// socket is one end of a TCP connection, or a listening socket.
type socket struct {
	local, remote netip.AddrPort
	listens       bool
	inode         string
}

// plain returns an address in the form that both lists of the kernel, for IPv4 and IPv6, have in common.
func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
