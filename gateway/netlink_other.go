//go:build !linux

package gateway

import (
	"context"
	"errors"
)

// WatchNetwork calls changed after each change of the device's network, until ctx ends. It then returns nil. Several
// changes within half a second count as one.
//
// It uses netlink and works on Linux only. On other systems, and where the system forbids it (Android), WatchNetwork
// returns an error at once: call [Client.NetworkChanged] from the callbacks of the system instead.
func WatchNetwork(context.Context, func()) error {
	return errors.New("gateway: watching the network is not supported on this system")
}
