//go:build !linux

package gateway

import (
	"context"
	"errors"
)

// SystemConnectivity watches the network by the means of the system: netlink on Linux. Elsewhere, and where a system does
// not let programs listen (Android), Watch returns an error and the host program calls [Client.NetworkChanged].
func SystemConnectivity() ConnectivityWatcher { return noWatcher{} }

type noWatcher struct{}

// Watch implements [ConnectivityWatcher].
func (noWatcher) Watch(context.Context, func()) error {
	return errors.New("this system is not watched")
}
