package gateway

import (
	"net"
	"sync"
)

// connTracker knows the open connections of a client, so that Close can end them and wait for those
// being dialed.
type connTracker struct {
	mu      sync.Mutex
	conns   map[*trackedConn]struct{}
	dialing sync.WaitGroup
	closed  bool
}

// trackedConn is a connection that removes itself from its tracker when it closes.
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
	made := &trackedConn{raw, l} // a pointer of our own, because a connection of the host program may not be usable as a map key
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
		_ = one.Close()
	}
	l.dialing.Wait()
}
