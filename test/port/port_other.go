//go:build !linux

// Package port finds ports for the programs of a test.
package port

import (
	"net"
	"testing"
)

// Free returns a port of this machine on which nothing listens now.
func Free(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
