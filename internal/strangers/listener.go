// Package strangers bounds the cost of connections that have not authenticated.
//
// A connection is a stranger from the moment it is accepted until a request on it authenticates:
// while it is silent, during the TLS handshake, while it sends an HTTP header, while a request
// without credentials is answered, while it is idle between two requests, and as a WebSocket before
// its hello. The Listener allows a bounded number of strangers in total and per network, and a
// bounded number of bytes that they make the server hold. At a bound it drops the stranger that was
// quiet for longest, so a client that authenticates soon is never in danger.
//
// Code that checks credentials calls Admit. An admitted WebSocket stops being a stranger for good
// and costs nothing here. An admitted request stops being one until it is answered, because the
// next request on its connection may come from another client of the same proxy.
package strangers

import (
	"container/list"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// perStranger is the cost of one stranger in the memory budget in bytes, besides what it has
	// sent: its goroutine and the buffers of the HTTP server, or those of its WebSocket.
	perStranger = 24 << 10
	// maxCounted bounds the bytes of a stranger that count toward the budget. The server holds no
	// more of one: headers are smaller, and bodies are read or discarded piece by piece.
	maxCounted = 64 << 10
	// dropsPause is how long nothing may be dropped before the count of drops restarts.
	dropsPause = time.Hour
)

// Reason is the bound for which a stranger was dropped.
type Reason string

// The reasons.
const (
	Total   Reason = "total"   // too many strangers, or connections, at once
	Network Reason = "network" // too many strangers from one network
	Memory  Reason = "memory"  // strangers made the server hold too many bytes
)

// Options are the bounds. Zero means no bound.
type Options struct {
	// Total is the maximum number of strangers at once.
	Total int
	// PerNetwork is the maximum number of them from one network.
	PerNetwork int
	// Memory is how many bytes all strangers may make the server hold.
	Memory int64
	// Open is the maximum number of connections of any kind. If authenticated peers have all of
	// them, the next one waits in the system's queue.
	Open int
	// Grace is how long a new stranger isn't dropped because of Total or Open. Others wait that
	// long in the system's queue, so when very many peers reconnect at the same moment, each is
	// still served.
	Grace time.Duration

	// NetworkOf returns the network that an address counts for, and false for a peer that stands
	// for many clients, such as a proxy. Nil: all addresses are one network.
	NetworkOf func(netip.Addr) (network netip.Prefix, bounded bool)
	// Changed gets the number of strangers and the bytes they count. It is called with a lock held,
	// must not block, and may be nil.
	Changed func(count int, bytes int64)
	// Dropped is called for each stranger that was dropped. It may be nil.
	Dropped func(Reason)
}

// Drops counts the strangers that were dropped for one reason.
type Drops struct {
	Reason Reason
	Count  int        // since First
	First  time.Time  // no pause of an hour since
	Last   time.Time  // the last time
	Addr   netip.Addr // of the connection that was dropped last, if known
}

// Listener accepts connections within the bounds. Only one goroutine at a time may call Accept, as
// http.Server does. Everything else is safe for concurrent use.
type Listener struct {
	net.Listener
	o       Options
	changed chan struct{} // 1 slot: a connection has ended or was admitted
	done    chan struct{}
	once    sync.Once

	mu       sync.Mutex
	open     int        // connections of any kind
	all      *list.List // of *Stranger, the one that was quiet for longest in front
	networks map[netip.Prefix]*list.List
	bytes    int64
	drops    map[Reason]Drops
}

// Listen bounds the connections of l. Connections other than TCP pass without bounds.
func Listen(l net.Listener, o Options) *Listener {
	return &Listener{Listener: l, o: o, changed: make(chan struct{}, 1), done: make(chan struct{}), all: list.New(),
		networks: map[netip.Prefix]*list.List{}, drops: map[Reason]Drops{}}
}

// Accept returns the next connection as a *Conn. At a bound it drops other connections first.
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

// enter makes a new connection a stranger, or returns when to try again; 0: when a connection has
// ended.
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

// full reports whether a new connection must wait or replace an old one. Callers hold the lock.
func (l *Listener) full() bool {
	return l.o.Total > 0 && l.all.Len() >= l.o.Total || l.o.Open > 0 && l.open >= l.o.Open
}

// crowded reports whether a network has the maximum of strangers, so that a new one replaces an old
// one. Callers hold the lock.
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

// drop closes strangers that were removed from the lists. Call it without the lock.
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

// Drops returns what was dropped within the last hour, by reason.
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

// Count returns the number of strangers.
func (l *Listener) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Len()
}

// link appends a stranger to the lists, as a client of an address, and returns those that exceed
// the bounds. Callers hold the lock.
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
		l.networks[network] = of // unlink removes an empty list
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

// networkOf returns the network of an address, and false if the address stands for many clients.
func (l *Listener) networkOf(addr netip.Addr) (netip.Prefix, bool) {
	if l.o.NetworkOf == nil {
		return netip.Prefix{}, true
	}
	return l.o.NetworkOf(addr)
}

// shrink removes the oldest strangers while they count too many bytes. Callers hold the lock.
func (l *Listener) shrink() (out []dropped) {
	for l.o.Memory > 0 && l.bytes > l.o.Memory && l.all.Len() > 0 {
		oldest := l.all.Front().Value.(*Stranger)
		l.unlink(oldest)
		out = append(out, dropped{oldest, Memory})
	}
	return out
}

// unlink removes a stranger from the lists, if it is in them. Callers hold the lock.
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

// Close closes the listener and ends a waiting Accept.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}
