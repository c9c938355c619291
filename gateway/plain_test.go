package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// relay is an address that leads to one host now and to another later, like an address for a phone
// that moves.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	target   string
	open     map[net.Conn]bool
	sent     map[string]*bytes.Buffer // by target: what came from the client
	work     sync.WaitGroup
}

func relayTo(t *testing.T, target string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, target: target, open: map[net.Conn]bool{}, sent: map[string]*bytes.Buffer{}}
	r.work.Go(r.run)
	t.Cleanup(func() { listener.Close(); r.lead(""); r.work.Wait() })
	return r
}

func (r *relay) run() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		target := r.target
		r.open[in] = true
		r.mu.Unlock()
		out, err := net.Dial("tcp", target)
		if err != nil {
			in.Close()
			continue
		}
		r.mu.Lock()
		r.open[out] = true
		r.mu.Unlock()
		r.work.Go(func() { defer out.Close(); io.Copy(io.MultiWriter(out, &sentTo{r, target}), in) })
		r.work.Go(func() { defer in.Close(); io.Copy(in, out) })
	}
}

// lead points the address elsewhere and closes the open connections.
func (r *relay) lead(target string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target = target
	for conn := range r.open {
		conn.Close()
	}
	clear(r.open)
}

func (r *relay) sentTo(target string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sent[target] == nil {
		return ""
	}
	return r.sent[target].String()
}

type sentTo struct {
	relay  *relay
	target string
}

func (s *sentTo) Write(p []byte) (int, error) {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	if s.relay.sent[s.target] == nil {
		s.relay.sent[s.target] = &bytes.Buffer{}
	}
	return s.relay.sent[s.target].Write(p)
}

// The address of the gateway at home belongs to another host in another network, and the client
// does not know of the change.
func TestPlainAddressThatLeadsElsewhere(t *testing.T) {
	t.Parallel()
	portal := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>Welcome") }), overPlain)
	gw := newHermes(t, "0.22.2")
	home, remote := serve(t, gw, overPlain), serve(t, gw)
	r := relayTo(t, home.address)
	c := client(t, Profile{Remote: remote.URL, Local: "http://" + r.listener.Addr().String()})
	on(t, c, Local)
	if !strings.Contains(r.sentTo(home.address), "Authorization: Bearer "+testToken) {
		t.Fatal("the relay does not see what is sent: the test proves nothing")
	}
	first, _, _ := strings.Cut(r.sentTo(home.address), "\r\n\r\n")
	if !strings.HasPrefix(first, "GET /health ") || strings.Contains(first, "Authorization") {
		t.Errorf("the connection began with %q", first)
	}
	r.lead(portal.address)
	on(t, c, Remote)
	if _, err := c.Sessions.Create(t.Context(), SessionParams{}); errors.Is(err, ErrNoRoute) {
		t.Error(err)
	}
	portal.gotNothingSecret(testToken)
	if sent := r.sentTo(portal.address); sent == "" || strings.Contains(sent, "Authorization") || strings.Contains(sent, testToken) {
		t.Errorf("the portal was sent %q", sent)
	}
	// The same for a call that changes something, on the connection that is gone.
	r.lead(home.address)
	c.Foreground()
	on(t, c, Local)
	r.lead(portal.address)
	if _, err := c.Sessions.Create(t.Context(), SessionParams{}); err == nil {
		t.Error("a session was made at a portal")
	}
	if sent := r.sentTo(portal.address); strings.Contains(sent, "Authorization") || strings.Contains(sent, "POST") {
		t.Errorf("the portal was sent %q", sent)
	}
}

// A host that closes each connection after its response is verified all the same.
func TestPlainWithoutKeepAlive(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.19.0")
	closing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		gw.ServeHTTP(w, r)
	}), overPlain)
	on(t, client(t, Profile{Remote: closing.URL}), Remote)
}

// farConn claims that its peer is on the internet.
type farConn struct {
	net.Conn
	peer net.IP
}

func (c farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: c.peer, Port: 80} }

func TestPlainToPrivateNetworksOnly(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	for _, tc := range []struct {
		name, peer string
		insecure   bool
		ok         bool
	}{
		{"gateway.test", "203.0.113.7", true, false},
		{"gateway.test", "192.168.1.7", true, true},
		{"gateway.test", "100.101.102.103", true, true},
		{"gateway.test", "fd00::7", true, true},
		{"gateway.test", "::ffff:8.8.8.8", true, false},
		{"localhost", "192.168.1.7", false, false},
		{"localhost", "203.0.113.7", true, false},
		{"localhost", "127.0.0.1", false, true},
	} {
		far := serve(t, gw, overPlain)
		c := client(t, Profile{Remote: "http://" + tc.name, Insecure: tc.insecure}, func(_ *Credentials, o *Options) {
			o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
				raw, err := (&net.Dialer{}).DialContext(ctx, network, far.address)
				return farConn{raw, net.ParseIP(tc.peer)}, err
			}
		})
		_, err := c.Connect(t.Context())
		if tc.ok != (err == nil) {
			t.Errorf("%s at %s (insecure %t): %v", tc.name, tc.peer, tc.insecure, err)
		}
		if !tc.ok && far.bytes() != "" {
			t.Errorf("%s at %s was sent %q", tc.name, tc.peer, far.bytes())
		}
	}
}
