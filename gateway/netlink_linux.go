package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// WatchNetwork calls changed after each change of the device's network, until ctx ends. It then
// returns nil. Several changes within half a second count as one.
//
// It uses netlink and works on Linux only. On other systems, and where the system forbids it
// (Android), WatchNetwork returns an error at once: call [Client.NetworkChanged] from the callbacks
// of the system instead.
func WatchNetwork(ctx context.Context, changed func()) error {
	return watchNetlink(ctx, changed, 500*time.Millisecond)
}

// Multicast groups of rtnetlink(7): interfaces, addresses and routes.
const (
	groupLink      = 0x1
	groupIPv4Addr  = 0x10
	groupIPv4Route = 0x40
	groupIPv6Addr  = 0x100
	groupIPv6Route = 0x400
)

// watchNetlink calls changed once settle has passed after the first message of a change: one change
// of the network causes many messages.
func watchNetlink(ctx context.Context, changed func(), settle time.Duration) error {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("gateway: watch the network: %w", err)
	}
	address := &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: groupLink | groupIPv4Addr | groupIPv4Route | groupIPv6Addr | groupIPv6Route}
	if err := syscall.Bind(fd, address); err != nil {
		_ = syscall.Close(fd)
		return fmt.Errorf("gateway: watch the network: %w", err)
	}
	socket := os.NewFile(uintptr(fd), "netlink")
	defer socket.Close()
	// One loop reads messages and waits for settle: the end of settle is the deadline of the read.
	defer context.AfterFunc(ctx, func() { socket.Close() })()
	buffer := make([]byte, 64<<10)
	waiting := false
	for {
		n, err := socket.Read(buffer)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			waiting = false
			if err := socket.SetReadDeadline(time.Time{}); err != nil {
				return fmt.Errorf("gateway: watch the network: %w", err)
			}
			changed()
			continue
		case errors.Is(err, syscall.ENOBUFS): // the socket buffer overflowed: something changed
		case err != nil:
			return fmt.Errorf("gateway: watch the network: %w", err)
		case !matters(buffer[:n]):
			continue
		}
		if !waiting { // counted from the first message, so that a stream of them cannot delay it forever
			waiting = true
			if err := socket.SetReadDeadline(time.Now().Add(settle)); err != nil {
				return fmt.Errorf("gateway: watch the network: %w", err)
			}
		}
	}
}

// matters reports whether messages announce a change. Statistics of wireless interfaces arrive as
// interface messages that change nothing.
func matters(data []byte) bool {
	messages, err := syscall.ParseNetlinkMessage(data)
	if err != nil {
		return true
	}
	for _, m := range messages {
		switch m.Header.Type {
		case syscall.RTM_NEWLINK:
			const change = 12 // offset of ifi_change in struct ifinfomsg
			if len(m.Data) < change+4 || binary.NativeEndian.Uint32(m.Data[change:]) != 0 {
				return true
			}
		case syscall.RTM_DELLINK, syscall.RTM_NEWADDR, syscall.RTM_DELADDR, syscall.RTM_NEWROUTE, syscall.RTM_DELROUTE:
			return true
		}
	}
	return false
}
