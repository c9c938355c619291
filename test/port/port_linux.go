// Package port finds ports for the programs of a test.
package port

import (
	"syscall"
	"testing"
)

// Free returns a port of this machine that is the test's until its end. A socket that is bound and does not listen keeps
// the system from giving it to anybody else, while a server that asks for it by number gets it. That matters: Caddy
// would share its port with another Caddy without a word.
func Free(t testing.TB) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(fd) })
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return addr.(*syscall.SockaddrInet4).Port
}
