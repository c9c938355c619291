package server

import (
	"net"
	"sync"
	"syscall"
)

// spareFiles are those that connections may not take: the database, files of devices, the gateway and the log need them. Without them
// strangers who only connect would keep the phones that are connected from being served.
const spareFiles = 128

// spare takes no more connections at a time than leave the process files to open. The others wait in the system's queue.
func spare(l net.Listener, limit int) net.Listener {
	if limit <= 0 {
		return l
	}
	return &sparing{Listener: l, room: make(chan struct{}, max(limit-spareFiles, limit/2)), done: make(chan struct{})}
}

type sparing struct {
	net.Listener
	room chan struct{}
	done chan struct{}
	once sync.Once
}

// Accept waits for room, and for a connection.
func (s *sparing) Accept() (net.Conn, error) {
	select {
	case s.room <- struct{}{}:
	case <-s.done:
		return nil, net.ErrClosed
	}
	c, err := s.Listener.Accept()
	tcp, is := c.(*net.TCPConn)
	if err != nil || !is {
		<-s.room
		return c, err
	}
	return &spared{TCPConn: tcp, room: s.room}, nil
}

// Close ends the waiting for room, too.
func (s *sparing) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.Listener.Close()
}

// spared gives its room back when it is closed.
type spared struct {
	*net.TCPConn
	room chan struct{}
	once sync.Once
}

var _ syscall.Conn = &spared{} // wsconn waits on the socket itself

// Close closes the connection.
func (s *spared) Close() error {
	err := s.TCPConn.Close()
	s.once.Do(func() { <-s.room })
	return err
}
