// Package strangers bounds what connections cost that have not authenticated.
//
// A connection is a stranger from the moment it is accepted until a request on it authenticates:
// while it says nothing, during the TLS handshake, while it sends an HTTP header, while a request
// without credentials is answered, while it is idle between two requests, and as a WebSocket before
// its hello. The Listener holds a bounded number of strangers, of all networks and of each, and a
// bounded number of bytes that they make the server hold. When a bound is reached, the stranger
// that was quiet for longest is dropped, so whoever authenticates soon is never in danger.
//
// Whoever checks credentials calls Admit. An admitted WebSocket stops being a stranger for good and
// costs nothing here. An admitted request stops being one until the request is answered, because
// the next request on its connection may come from another client of the same proxy.
package strangers

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// perStranger is what one stranger counts toward the memory budget, in bytes, beside what it
	// has sent: its goroutine and the buffers of the HTTP server, or those of its WebSocket.
	perStranger = 24 << 10
	// maxCounted bounds what a stranger's own bytes count toward the budget. The server holds no
	// more of one: its header is smaller, and bodies are read or discarded piece by piece.
	maxCounted = 64 << 10
	// dropsPause is how long nothing must be dropped until the count of drops starts anew.
	dropsPause = time.Hour
)

// Reason says which bound a stranger was dropped for.
type Reason string

// The reasons.
const (
	Total   Reason = "total"   // too many strangers, or connections, at a time
	Network Reason = "network" // too many strangers from one network
	Memory  Reason = "memory"  // strangers made the server hold too many bytes
)

// Options are the bounds. Zero means that there is none.
type Options struct {
	// Total is how many strangers there may be at a time.
	Total int
	// PerNetwork is how many of them may come from one network.
	PerNetwork int
	// Memory is how many bytes the strangers may make the server hold, together.
	Memory int64
	// Open is how many connections of any kind there may be at a time. When all are taken by
	// authenticated peers, the next one waits in the system's queue.
	Open int
	// Grace is for how long a new stranger is not dropped because of Total or Open. Others wait for
	// that long in the system's queue, so when very many peers come back at the same moment, each is
	// still served.
	Grace time.Duration

	// NetworkOf gives what counts as one network for an address, and false for a peer that stands
	// for many clients, such as a proxy. Nil: all addresses are one network.
	NetworkOf func(netip.Addr) (network netip.Prefix, bounded bool)
	// Changed is told how many strangers there are and how many bytes they count. It is called with
	// a lock held, must not block, and may be nil.
	Changed func(count int, bytes int64)
	// Dropped is told of each stranger that was dropped. It may be nil.
	Dropped func(Reason)
}

// Drops counts the strangers that were dropped for one reason.
type Drops struct {
	Reason Reason
	Count  int        // since First
	First  time.Time  // no pause of an hour since
	Last   time.Time  // the last time
	Addr   netip.Addr // whose connection was dropped last, as far as it is known
}

// Listener accepts connections within the bounds. Its Accept must be called by one goroutine at a
// time, as http.Server does; everything else is safe for concurrent use.
type Listener struct {
	net.Listener
	o       Options
	changed chan struct{} // a connection has ended or was admitted; has room for one
	done    chan struct{}
	once    sync.Once

	mu       sync.Mutex
	open     int        // connections of any kind
	all      *list.List // of *Stranger, the one that was quiet for longest in front
	networks map[netip.Prefix]*list.List
	bytes    int64
	drops    map[Reason]Drops
}

// Listen bounds the connections of l. Connections that are not TCP pass unbounded.
func Listen(l net.Listener, o Options) *Listener {
	return &Listener{Listener: l, o: o, changed: make(chan struct{}, 1), done: make(chan struct{}), all: list.New(),
		networks: map[netip.Prefix]*list.List{}, drops: map[Reason]Drops{}}
}

// Accept returns the next connection as a *Conn. Where the bounds ask for it, other connections
// are dropped first.
func (l *Listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	tcp, is := nc.(*net.TCPConn)
	if err != nil || !is {
		return nc, err
	}
	c := &Conn{TCPConn: tcp, l: l}
	s := &Stranger{conn: c, peer: addrOf(tcp)}
	c.stranger.Store(s)
	for {
		entered, wait := l.enter(s)
		if entered {
			return c, nil
		}
		var soon <-chan time.Time // nil: only the end of a connection helps
		if wait > 0 {
			soon = time.After(wait)
		}
		select {
		case <-l.changed:
		case <-soon:
		case <-l.done:
			_ = tcp.Close()
			return nil, net.ErrClosed
		}
	}
}

func addrOf(c net.Conn) netip.Addr {
	if a, is := c.RemoteAddr().(*net.TCPAddr); is {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// enter makes a new connection one of the strangers, or says after how long to try again; 0: when
// a connection has ended.
func (l *Listener) enter(s *Stranger) (entered bool, wait time.Duration) {
	for {
		l.mu.Lock()
		now := time.Now()
		if !l.full() || l.crowded(s.peer) {
			l.open++
			s.since = now
			crowd := l.link(s, s.peer)
			l.mu.Unlock()
			l.drop(now, crowd...)
			return true, 0
		}
		if l.all.Len() == 0 {
			l.mu.Unlock()
			return false, 0
		}
		oldest := l.all.Front().Value.(*Stranger)
		if wait := l.o.Grace - now.Sub(oldest.since); wait > 0 {
			l.mu.Unlock()
			return false, wait
		}
		l.unlink(oldest)
		l.mu.Unlock()
		l.drop(now, dropped{oldest, Total})
	}
}

// full reports whether a new connection has to wait, or an old one to go. Locked.
func (l *Listener) full() bool {
	return l.o.Total > 0 && l.all.Len() >= l.o.Total || l.o.Open > 0 && l.open >= l.o.Open
}

// crowded reports whether a network has all the strangers that it may have, so that one of them goes
// for a new one. Locked.
func (l *Listener) crowded(addr netip.Addr) bool {
	network, bounded := l.networkOf(addr)
	of := l.networks[network]
	return bounded && l.o.PerNetwork > 0 && of != nil && of.Len() >= l.o.PerNetwork
}

// dropped is a stranger that is taken out of the lists and must be closed.
type dropped struct {
	*Stranger
	reason Reason
}

// drop closes strangers that are out of the lists. It must be called without the lock.
func (l *Listener) drop(now time.Time, list ...dropped) {
	for _, d := range list {
		_ = d.conn.Close()
		if l.o.Dropped != nil {
			l.o.Dropped(d.reason)
		}
		l.mu.Lock()
		count := l.drops[d.reason]
		if now.Sub(count.Last) > dropsPause {
			count = Drops{Reason: d.reason, First: now}
		}
		count.Count++
		count.Last, count.Addr = now, d.client
		l.drops[d.reason] = count
		l.mu.Unlock()
	}
}

// Drops lists what was dropped within the last hour, by reason.
func (l *Listener) Drops() (list []Drops) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, reason := range []Reason{Total, Network, Memory} {
		if d, any := l.drops[reason]; any && time.Since(d.Last) <= dropsPause {
			list = append(list, d)
		}
	}
	return list
}

// Count returns how many strangers there are.
func (l *Listener) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len()
}

// link puts a stranger at the end of the lists, as a client of an address, and returns what is too
// much then. Locked.
func (l *Listener) link(s *Stranger, client netip.Addr) (out []dropped) {
	s.client = client
	s.inAll = l.all.PushBack(s)
	l.bytes += s.cost()
	if network, bounded := l.networkOf(client); bounded {
		of := l.networks[network]
		if of == nil {
			of = list.New()
			l.networks[network] = of
		}
		for l.o.PerNetwork > 0 && of.Len() >= l.o.PerNetwork {
			oldest := of.Front().Value.(*Stranger)
			l.unlink(oldest)
			out = append(out, dropped{oldest, Network})
		}
		l.networks[network] = of // it is taken out when it is empty
		s.network, s.ofNetwork = network, of
		s.inNetwork = of.PushBack(s)
	}
	for l.o.Total > 0 && l.all.Len() > l.o.Total { // an admitted request has ended
		oldest := l.all.Front().Value.(*Stranger)
		l.unlink(oldest)
		out = append(out, dropped{oldest, Total})
	}
	out = append(out, l.shrink()...)
	l.tell()
	return out
}

// networkOf gives what an address counts as, and false where it stands for many clients.
func (l *Listener) networkOf(addr netip.Addr) (netip.Prefix, bool) {
	if l.o.NetworkOf == nil {
		return netip.Prefix{}, true
	}
	return l.o.NetworkOf(addr)
}

// shrink takes out the oldest while the strangers count too many bytes. Locked.
func (l *Listener) shrink() (out []dropped) {
	for l.o.Memory > 0 && l.bytes > l.o.Memory && l.all.Len() > 0 {
		oldest := l.all.Front().Value.(*Stranger)
		l.unlink(oldest)
		out = append(out, dropped{oldest, Memory})
	}
	return out
}

// unlink takes a stranger out of the lists, where it is in them. Locked.
func (l *Listener) unlink(s *Stranger) {
	if s.inAll == nil {
		return
	}
	l.all.Remove(s.inAll)
	s.inAll = nil
	l.bytes -= s.cost()
	if s.inNetwork != nil {
		s.ofNetwork.Remove(s.inNetwork)
		if s.ofNetwork.Len() == 0 {
			delete(l.networks, s.network)
		}
		s.inNetwork, s.ofNetwork = nil, nil
	}
	l.tell()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

func (l *Listener) tell() {
	if l.o.Changed != nil {
		l.o.Changed(l.all.Len(), l.bytes)
	}
}

// Close ends the listener, and an Accept that waits.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}
