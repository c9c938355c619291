package gateway

import (
	"net"
	"sync"
)

// lines are the open connections of a client, so that Close ends them all and waits for those that are being made.
type connTracker struct {
	mu      sync.Mutex
	conns   map[*trackedConn]struct{}
	dialing sync.WaitGroup
	closed  bool
}

// line is a connection that takes itself off the list.
type trackedConn struct {
	net.Conn
	tracker *connTracker
}

func (l *trackedConn) Close() error {
	l.tracker.mu.Lock()
	delete(l.tracker.conns, l)
	l.tracker.mu.Unlock()
	return l.Conn.Close()
}

func (l *connTracker) beginDial() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.dialing.Add(1)
	return true
}

func (l *connTracker) endDial() { l.dialing.Done() }

func (l *connTracker) track(raw net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		raw.Close()
		return nil, ErrClosed
	}
	if l.conns == nil {
		l.conns = map[*trackedConn]struct{}{}
	}
	made := &trackedConn{raw, l} // a connection of the host program's own making may be no key of a map
	l.conns[made] = struct{}{}
	return made, nil
}

func (l *connTracker) closeAll() {
	l.mu.Lock()
	l.closed = true
	open := l.conns
	l.conns = nil
	l.mu.Unlock()
	for one := range open {
		one.Close()
	}
	l.dialing.Wait()
}
