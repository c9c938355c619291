package server

import (
	"fmt"
	"net"
	"syscall"
)

// peerUser returns the user at the other end of a unix socket, as "uid N". The kernel reports it,
// so nobody can forge it.
func peerUser(c net.Conn) string {
	unix, ok := c.(*net.UnixConn)
	if !ok {
		return ""
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return ""
	}
	var peer *syscall.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) {
		peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil || failed != nil {
		return ""
	}
	return fmt.Sprintf("uid %d", peer.Uid)
}
