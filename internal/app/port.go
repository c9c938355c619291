package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hermes-mobile/internal/atomicfile"
)

// portFile is the file in the data folder that stores the port. A browser keeps the page's data per
// origin, and the port is part of the origin.
const portFile = "port"

// The range lies below the ports that systems assign to outgoing connections. So the port is
// usually free again at the next start.
const (
	firstPort = 20000
	lastPort  = 32000
)

// listen listens on the requested port. If asked is 0, it listens on the stored port, or else on a
// free one.
func listen(data string, asked int) (net.Listener, int, error) {
	path := filepath.Join(data, portFile)
	try := func(port int) (net.Listener, int, error) {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return l, port, err
	}
	if asked != 0 {
		l, port, err := try(asked)
		if err != nil {
			return nil, 0, fmt.Errorf("listen on port %d: %w: choose another port with --port", asked, err)
		}
		return l, port, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("read the stored port: %w", err)
	}
	kept, convErr := strconv.Atoi(strings.TrimSpace(string(text)))
	known := err == nil && convErr == nil && kept > 0 && kept < 1<<16
	if known {
		if l, port, err := try(kept); err == nil {
			return l, port, nil
		}
	}
	for range 50 {
		n, err := rand.Int(rand.Reader, big.NewInt(lastPort-firstPort))
		if err != nil {
			return nil, 0, err
		}
		l, port, err := try(firstPort + int(n.Int64()))
		if err != nil {
			continue
		}
		if known { // for this run only: the page's data belongs to the stored port
			return l, port, nil
		}
		if err := atomicfile.Replace(path, fmt.Appendf(nil, "%d\n", port), atomicfile.Options{}); err != nil {
			_ = l.Close()
			return nil, 0, fmt.Errorf("store the port: %w", err)
		}
		return l, port, nil
	}
	return nil, 0, errors.New("no free port found on 127.0.0.1: choose one with --port")
}
