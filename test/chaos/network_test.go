package chaos

import (
	"net"
	"sync"
	"time"
)

// network is a bad network between one phone and the server: it does to the connections there are what it is told.
type network struct {
	net.Listener
	to  string
	all sync.WaitGroup

	mu    sync.Mutex
	wires map[*wire]bool
}

// wire is one connection through a network.
type wire struct {
	n             *network
	phone, server net.Conn

	mu      sync.Mutex
	swallow bool          // nothing passes either way, and nobody is told
	delay   time.Duration // of each piece
	trickle bool          // a few bytes at a time
	left    int           // bytes until it is cut; negative: it is not
	late    bool          // what the phone says is kept until a newer connection has spoken
	kept    []byte
	closed  bool
}

func newNetwork(to string) (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &network{Listener: l, to: to, wires: map[*wire]bool{}}
	n.all.Go(n.serve)
	return n, nil
}

func (n *network) stop() {
	_ = n.Close()
	n.each((*wire).close)
	n.all.Wait()
}

func (n *network) serve() {
	for {
		phone, err := n.Accept()
		if err != nil {
			return
		}
		n.all.Go(func() {
			server, err := net.DialTimeout("tcp", n.to, 5*time.Second)
			if err != nil {
				_ = phone.Close()
				return
			}
			w := &wire{n: n, phone: phone, server: server, left: -1}
			n.mu.Lock()
			n.wires[w] = true
			n.mu.Unlock()
			n.all.Go(func() { w.pass(server, phone, false) })
			w.pass(phone, server, true)
		})
	}
}

// each does something to all connections there are.
func (n *network) each(f func(*wire)) {
	n.mu.Lock()
	var list []*wire
	for w := range n.wires {
		list = append(list, w)
	}
	n.mu.Unlock()
	for _, w := range list {
		f(w)
	}
}

// set changes how the connections there are behave.
func (n *network) set(f func(*wire)) {
	n.each(func(w *wire) {
		w.mu.Lock()
		defer w.mu.Unlock()
		f(w)
	})
}

// idle cuts what only hangs, so that nothing but what is in use is left.
func (n *network) idle() {
	n.each(func(w *wire) {
		w.mu.Lock()
		dead := w.swallow || w.late
		w.delay, w.trickle, w.left = 0, false, -1
		w.mu.Unlock()
		if dead {
			w.close()
		}
	})
}

func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	_ = w.phone.Close()
	_ = w.server.Close()
	w.n.mu.Lock()
	delete(w.n.wires, w)
	w.n.mu.Unlock()
}

// reset closes without the usual farewell of TCP.
func (w *wire) reset() {
	for _, c := range []net.Conn{w.phone, w.server} {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	w.close()
}

// silent reports whether the other end must not hear that this one has gone.
func (w *wire) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return (w.swallow || w.late) && !w.closed
}

// pass forwards one way until the connection ends.
func (w *wire) pass(from, to net.Conn, up bool) {
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !w.forward(buf[:n], to, up) {
			w.close()
			return
		}
		if err != nil {
			if up && w.silent() {
				_ = from.Close() // the phone gave it up; the server has to find that out
				return
			}
			w.close()
			return
		}
	}
}

// forward does what the network does to some bytes, and reports whether the connection is still there.
func (w *wire) forward(b []byte, to net.Conn, up bool) bool {
	w.mu.Lock()
	swallow, late, delay := w.swallow, w.late, w.delay
	if late && up {
		w.kept = append(w.kept, b...)
	}
	w.mu.Unlock()
	if swallow || late {
		return true
	}
	if delay > 0 {
		time.Sleep(delay)
	}
	for len(b) > 0 {
		w.mu.Lock()
		n, cut := len(b), false
		if w.trickle {
			n = min(n, 64)
		}
		if w.left >= 0 {
			n = min(n, w.left)
			w.left -= n
			cut = w.left == 0
		}
		slow := w.trickle
		w.mu.Unlock()
		if _, err := to.Write(b[:n]); err != nil || cut {
			return false
		}
		b = b[n:]
		if slow {
			time.Sleep(2 * time.Millisecond)
		}
	}
	if up {
		w.n.overtaken(w)
	}
	return true
}

// overtaken lets the kept bytes of other connections through, now that a newer one has spoken.
func (n *network) overtaken(by *wire) {
	n.each(func(w *wire) {
		w.mu.Lock()
		kept, late := w.kept, w.late && w != by
		if late {
			w.kept, w.late = nil, false
		}
		w.mu.Unlock()
		if late {
			_, _ = w.server.Write(kept)
			w.close()
		}
	})
}
