package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// changeAddress adds an address to the loopback interface or removes it. It needs the privilege to
// do so.
func changeAddress(t *testing.T, add bool, ip netip.Addr) error {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	kind, flags := uint16(syscall.RTM_NEWADDR), uint16(syscall.NLM_F_REQUEST|syscall.NLM_F_ACK|syscall.NLM_F_CREATE|syscall.NLM_F_EXCL)
	if !add {
		kind, flags = syscall.RTM_DELADDR, syscall.NLM_F_REQUEST|syscall.NLM_F_ACK
	}
	order, bytes := binary.NativeEndian, ip.As4()
	message := order.AppendUint32(nil, 16+8+8+8)
	message = order.AppendUint16(message, kind)
	message = order.AppendUint16(message, flags)
	message = append(message, make([]byte, 8)...)                            // sequence and port
	message = append(message, syscall.AF_INET, 32, 0, syscall.RT_SCOPE_HOST) // family, prefix, flags, scope
	message = order.AppendUint32(message, 1)                                 // the loopback interface
	for _, attribute := range []uint16{syscall.IFA_LOCAL, syscall.IFA_ADDRESS} {
		message = order.AppendUint16(message, 8)
		message = order.AppendUint16(message, attribute)
		message = append(message, bytes[:]...)
	}
	if err := syscall.Sendto(fd, message, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := syscall.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return err
	}
	if code := int32(order.Uint32(answer[16:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

func TestNetlinkSeesAnAddress(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- watchNetlink(ctx, func() { seen <- struct{}{} }, 20*time.Millisecond)
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the watcher ended with %v", err)
		}
	}()
	ip := netip.MustParseAddr("127.83.21.7")
	err := changeAddress(t, true, ip)
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) {
		t.Skip("needs the right to change addresses of the loopback interface (CAP_NET_ADMIN)")
	}
	if err != nil {
		t.Fatal(err)
	}
	present := true
	defer func() {
		if present {
			changeAddress(t, false, ip)
		}
	}()
	// The watcher may miss the first change, so repeat it until one is seen.
	for {
		select {
		case <-seen:
			return
		case <-time.After(50 * time.Millisecond):
		}
		present = !present
		if err := changeAddress(t, present, ip); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNetlinkMessagesThatMatter(t *testing.T) {
	message := func(kind uint16, change uint32) []byte {
		order := binary.NativeEndian
		m := order.AppendUint32(nil, 32)
		m = order.AppendUint16(m, kind)
		m = append(m, make([]byte, 10+12)...)
		return order.AppendUint32(m, change)
	}
	for _, tc := range []struct {
		data []byte
		want bool
	}{
		{message(syscall.RTM_NEWLINK, 1), true},
		{message(syscall.RTM_NEWLINK, 0), false}, // statistics of a wireless interface
		{message(syscall.RTM_DELLINK, 0), true},
		{message(syscall.RTM_NEWADDR, 0), true},
		{message(syscall.RTM_DELROUTE, 0), true},
		{message(syscall.RTM_NEWNEIGH, 0), false},
		{[]byte{1, 2, 3}, false},
		{nil, false},
	} {
		if got := matters(tc.data); got != tc.want {
			t.Errorf("%x: %t", tc.data, got)
		}
	}
}

// A change that the watcher of a client reports leads to a new selection. The watcher ends with the
// client.
func TestWatcherOfAClient(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	local.down()
	w := &manual{event: make(chan chan struct{})}
	c := client(t, Profile{Remote: remote.URL, Local: local.URL}, func(_ *Credentials, o *Options) { o.WatchNetwork = w.Watch })
	on(t, c, Remote)
	local.up()
	told := make(chan struct{})
	w.event <- told
	<-told
	on(t, c, Local)
	c.Close()
	if !w.ended {
		t.Error("the watcher still runs after Close")
	}
}

type manual struct {
	event chan chan struct{}
	ended bool
}

func (m *manual) Watch(ctx context.Context, changed func()) error {
	for {
		select {
		case told := <-m.event:
			changed()
			close(told)
		case <-ctx.Done():
			m.ended = true
			return errors.New("ended")
		}
	}
}
