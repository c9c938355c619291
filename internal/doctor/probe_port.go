package doctor

import (
	"errors"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"syscall"
)

// ProbePort tries to listen on an address. It returns nil for port 0, which means any port.
func ProbePort(host string, port int) *Port {
	if port == 0 {
		return nil
	}
	p := &Port{Address: net.JoinHostPort(host, strconv.Itoa(port))}
	network := "tcp"
	if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
		network = "tcp4" // 0.0.0.0 does not mean every IPv6 address
	}
	l, err := net.Listen(network, p.Address)
	if err == nil {
		_ = l.Close()
		return p
	}
	if InUse(err) {
		p.Taken, p.Holder = true, PortHolder(host, port)
	}
	return p
}

// triedPorts is the number of ports that FreePort tries.
const triedPorts = 20

// FreePort returns the first free port above port. It returns 0 if the next triedPorts are taken.
func FreePort(host string, port int) int {
	for n := port + 1; n <= min(port+triedPorts, 65535); n++ {
		if p := ProbePort(host, n); p != nil && !p.Taken {
			return n
		}
	}
	return 0
}

// InUse reports whether listening failed because another program uses the port.
func InUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || runtime.GOOS == "windows" && errors.Is(err, syscall.Errno(10048)) // WSAEADDRINUSE
}
