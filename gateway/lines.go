package gateway

import (
	"net"
	"sync"
)

// lines are the open connections of a client, so that Close ends them all and waits for those that are being made.
type lines struct {
	mu     sync.Mutex
	open   map[*line]struct{}
	making sync.WaitGroup
	closed bool
}

// line is a connection that takes itself off the list.
type line struct {
	net.Conn
	lines *lines
}

func (l *line) Close() error {
	l.lines.mu.Lock()
	delete(l.lines.open, l)
	l.lines.mu.Unlock()
	return l.Conn.Close()
}

func (l *lines) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.making.Add(1)
	return true
}

func (l *lines) leave() { l.making.Done() }

func (l *lines) keep(raw net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		raw.Close()
		return nil, ErrClosed
	}
	if l.open == nil {
		l.open = map[*line]struct{}{}
	}
	made := &line{raw, l} // a connection of the host program's own making may be no key of a map
	l.open[made] = struct{}{}
	return made, nil
}

func (l *lines) closeAll() {
	l.mu.Lock()
	l.closed = true
	open := l.open
	l.open = nil
	l.mu.Unlock()
	for one := range open {
		one.Close()
	}
	l.making.Wait()
}
