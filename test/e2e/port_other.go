//go:build !linux

package e2e

import (
	"net"
	"testing"
)

// FreePort is a port of this machine on which nothing listens now.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
