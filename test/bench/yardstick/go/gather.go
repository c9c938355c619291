package main

import (
	"bufio"
	"net"
	"net/http"
	"sync"
)

// gathering gives a gateway's connection to the library in a form that writes the answers to all that came at once at
// once: what is written while something is handled goes out before the next read.
type gathering struct{ http.ResponseWriter }

func (g gathering) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(g.ResponseWriter).Hijack()
	return &gatherer{Conn: c, waits: true}, rw, err
}

type gatherer struct {
	net.Conn
	mu    sync.Mutex
	out   []byte
	waits bool // the reader waits for more
}

const gatherMost = 64 << 10

func (g *gatherer) Read(p []byte) (int, error) {
	g.mu.Lock()
	g.waits = true
	err := g.flush()
	g.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := g.Conn.Read(p)
	g.mu.Lock()
	g.waits = false
	g.mu.Unlock()
	return n, err
}

func (g *gatherer) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out = append(g.out, p...)
	if g.waits || len(g.out) >= gatherMost {
		return len(p), g.flush()
	}
	return len(p), nil
}

func (g *gatherer) flush() error {
	if len(g.out) == 0 {
		return nil
	}
	_, err := g.Conn.Write(g.out)
	g.out = g.out[:0]
	return err
}
