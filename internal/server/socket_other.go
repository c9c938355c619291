//go:build !linux

package server

import "net"

// peerUser returns nothing: this system doesn't report the user.
func peerUser(net.Conn) string { return "" }
