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

// portFile keeps the port: a browser keeps the page's history by its origin, of which the port is a part.
const portFile = "port"

// Ports are taken below those that systems give to outgoing connections, so that one is free again at the next start.
const (
	firstPort = 20000
	lastPort  = 32000
)

// listen takes the port that was asked for, or that of the last time, or any.
func listen(data string, asked int) (net.Listener, int, error) {
	path := filepath.Join(data, portFile)
	try := func(port int) (net.Listener, int, error) {
		l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return l, port, err
	}
	if asked != 0 {
		l, port, err := try(asked)
		if err != nil {
			return nil, 0, fmt.Errorf("cannot listen on port %d: %w; choose another with --port", asked, err)
		}
		return l, port, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, 0, fmt.Errorf("the port of the last time: %w", err)
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
		if known { // for this time only: the page's history is at the other one
			return l, port, nil
		}
		if err := atomicfile.Replace(path, fmt.Appendf(nil, "%d\n", port), atomicfile.Options{}); err != nil {
			_ = l.Close()
			return nil, 0, fmt.Errorf("keep the port: %w", err)
		}
		return l, port, nil
	}
	return nil, 0, errors.New("no port of the loopback interface could be taken: name one with --port")
}
