package server

import (
	"crypto/rand"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/wsconn"
)

// Bounds of probes. Package doctor describes them.
const (
	maxProbes    = 8
	probeLife    = time.Minute
	probeTimeout = 15 * time.Second
)

// probes are the checks of the public address that the doctor has announced.
type probes struct {
	port string // of the listener

	mu   sync.Mutex
	list []probe
	open map[*wsconn.Conn]bool
}

type probe struct {
	doctor.Probe
	until time.Time
}

// announce creates a probe, valid once and for a minute, with the host names that a stranger might
// try.
func (p *probes) announce() doctor.Probe {
	hosts := []string{net.JoinHostPort("127.0.0.1", p.port), net.JoinHostPort("localhost", p.port), "localhost"}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) >= maxProbes {
		p.list = p.list[1:]
	}
	n := probe{doctor.Probe{Nonce: rand.Text(), Answer: rand.Text(), Hosts: hosts}, time.Now().Add(probeLife)}
	p.list = append(p.list, n)
	return n.Probe
}

// take returns an announced probe, once.
func (p *probes) take(nonce string) (doctor.Probe, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.list, func(n probe) bool { return n.Nonce == nonce })
	if i < 0 {
		return doctor.Probe{}, false
	}
	n := p.list[i]
	p.list = slices.Delete(p.list, i, i+1)
	return n.Probe, time.Now().Before(n.until)
}

// serve answers a request of the doctor, and reports whether it was one. here says that it counts
// as a request of a program on this machine.
func (p *probes) serve(w http.ResponseWriter, r *http.Request, here bool) bool {
	query := r.URL.Query()
	if !query.Has(doctor.ProbeQuery) {
		return false
	}
	n, ok := p.take(query.Get(doctor.ProbeQuery))
	if !ok {
		http.Error(w, "This server announced no such probe.", http.StatusNotFound)
		return true
	}
	first := n.Line(1)
	w.Header().Set(doctor.ProbeHeader, n.Answer) // for a proxy that drops the upgrade
	if here {
		w.Header().Set(doctor.ProbeHere, r.RemoteAddr)
		first += " " + r.RemoteAddr
	}
	ws, err := wsconn.Upgrade(w, r, &wsconn.Options{MaxMessage: 1 << 10, MaxQueue: 4 << 10, WriteStall: probeTimeout})
	if err != nil {
		return true
	}
	p.mu.Lock()
	if p.open == nil {
		p.open = map[*wsconn.Conn]bool{}
	}
	p.open[ws] = true
	p.mu.Unlock()
	end := time.AfterFunc(probeTimeout, ws.CloseNow)
	_ = ws.Send([]byte(first))
	ws.Serve(&probeConn{of: p, probe: n, end: end})
	return true
}

// close ends open probes when the server stops.
func (p *probes) close() {
	p.mu.Lock()
	list := slices.Collect(maps.Keys(p.open))
	p.list = nil
	p.mu.Unlock()
	for _, ws := range list {
		ws.CloseNow()
		<-ws.Done()
	}
}

// probeConn is the server's end of a probe.
type probeConn struct {
	of    *probes
	probe doctor.Probe
	end   *time.Timer
}

var _ wsconn.Handler = (*probeConn)(nil)

// Message implements wsconn.Handler.
func (c *probeConn) Message(ws *wsconn.Conn, _ bool, payload []byte) {
	if string(payload) == doctor.ProbeWord {
		_ = ws.Send([]byte(c.probe.Line(2)))
	}
	ws.Close(wsconn.CodeNormal, "")
}

// TooBig implements wsconn.Handler.
func (c *probeConn) TooBig(*wsconn.Conn) {}

// Drained implements wsconn.Handler.
func (c *probeConn) Drained(*wsconn.Conn) {}

// Closed implements wsconn.Handler.
func (c *probeConn) Closed(ws *wsconn.Conn, _ error) {
	c.end.Stop()
	c.of.mu.Lock()
	delete(c.of.open, ws)
	c.of.mu.Unlock()
}
