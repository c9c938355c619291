package server

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/internal/cert"
)

// elsewhere is a listener whose connections come from another address than they do.
type elsewhere struct {
	net.Listener
	peer atomic.Pointer[net.TCPAddr]
}

type movedConn struct {
	net.Conn
	peer net.Addr
}

func (c movedConn) RemoteAddr() net.Addr { return c.peer }

func (l *elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if p := l.peer.Load(); err == nil && p != nil {
		c = movedConn{c, p}
	}
	return c, err
}

// port is a running HTTP server on one port for both kinds of connection.
type port struct {
	t    *testing.T
	from *elsewhere
	one  *onePort
}

func openPort(t *testing.T, timeout time.Duration) *port {
	t.Helper()
	c, err := cert.Open(cert.Options{Mode: cert.Self, Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	ok(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	p := &port{t: t, from: &elsewhere{Listener: l}}
	p.one = newOnePort(p.from, c.TLS(), timeout)
	web := newHTTPServer(encrypted(c, cert.Self, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "served, encrypted: %v", r.TLS != nil)
	})), slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(p.one)
	}()
	t.Cleanup(func() {
		if err := web.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // a test may have closed the port itself
			t.Error(err)
		}
		<-done
		c.Close()
	})
	return p
}

func (p *port) dial() net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.one.Addr().String())
	ok(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	ok(p.t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// ask sends a request as it is and returns the answer.
func ask(t *testing.T, c net.Conn, request string) (*http.Response, string) {
	t.Helper()
	_, err := io.WriteString(c, request)
	ok(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	ok(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(t, err)
	return resp, string(body)
}

const plainGet = "GET /x?y=1 HTTP/1.1\r\nHost: a.example:8787\r\n\r\n"

func TestOnePortForBoth(t *testing.T) {
	p := openPort(t, patience)
	var silent []net.Conn
	for range 50 { // these hold up nobody
		silent = append(silent, p.dial())
	}
	if _, body := ask(t, p.dial(), plainGet); body != "served, encrypted: false" {
		t.Errorf("plain: %q", body)
	}
	encrypted := tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if resp, body := ask(t, encrypted, plainGet); body != "served, encrypted: true" || resp.ProtoMajor != 1 || encrypted.ConnectionState().NegotiatedProtocol != "http/1.1" {
		t.Errorf("encrypted: %q by %s", body, encrypted.ConnectionState().NegotiatedProtocol)
	}
	// A byte at a time is as good.
	slow := p.dial()
	for _, b := range []byte(plainGet[:len(plainGet)-1]) {
		_, err := slow.Write([]byte{b})
		ok(t, err)
	}
	if _, body := ask(t, slow, "\n"); body != "served, encrypted: false" {
		t.Errorf("slow: %q", body)
	}
	// Those that were silent may speak at last.
	if _, body := ask(t, silent[7], plainGet); body != "served, encrypted: false" {
		t.Errorf("late: %q", body)
	}
	// The end of the listener is theirs, too.
	if err := p.one.Close(); err != nil {
		t.Error(err)
	}
	var timeout net.Error
	if _, err := silent[8].Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("a silent connection is still open: %v", err)
	}
	if err := p.one.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := p.one.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after the end: %v", err)
	}
}

func TestSilentConnectionEnds(t *testing.T) {
	p := openPort(t, time.Millisecond)
	if _, err := p.dial().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a connection that says nothing: %v", err)
	}
	p.one.mu.Lock()
	defer p.one.mu.Unlock()
	if n := len(p.one.silent); n != 0 {
		t.Errorf("%d silent connections are still known", n)
	}
}

// broken fails a few times, as a listener does when there are no file descriptors left.
type broken struct {
	net.Listener
	failures atomic.Int32
}

func (b *broken) Accept() (net.Conn, error) {
	if b.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return b.Listener.Accept()
}

func TestAcceptErrorsArePassedOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	b := &broken{Listener: l}
	b.failures.Store(2)
	o := newOnePort(b, &tls.Config{}, patience)
	defer o.Close()
	for range 2 {
		if _, err := o.Accept(); err == nil || err.Error() != "too many open files" {
			t.Fatalf("error %v", err)
		}
	}
	c, err := net.Dial("tcp", l.Addr().String())
	ok(t, err)
	defer c.Close()
	_, err = c.Write([]byte("G"))
	ok(t, err)
	got, err := o.Accept()
	ok(t, err)
	_ = got.Close()
}

// Plain requests of other machines are not served: a page is redirected, everything else refused.
func TestPlainFromElsewhere(t *testing.T) {
	p := openPort(t, patience)
	const upgrade = "GET /ws HTTP/1.1\r\nHost: a.example:8787\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	const forwarded = "GET /x?y=1 HTTP/1.1\r\nHost: a.example:8787\r\nX-Forwarded-For: 127.0.0.1\r\n\r\n"
	for _, tt := range []struct {
		peer, request string
		status        int
	}{
		{"127.0.0.1", plainGet, http.StatusOK},
		{"127.9.9.9", plainGet, http.StatusOK},
		{"::1", plainGet, http.StatusOK},
		{"127.0.0.1", forwarded, http.StatusOK},
		{"192.0.2.9", plainGet, http.StatusPermanentRedirect},
		{"192.0.2.9", "HEAD" + strings.TrimPrefix(plainGet, "GET"), http.StatusPermanentRedirect},
		{"10.1.2.3", plainGet, http.StatusPermanentRedirect},
		{"fe80::1", plainGet, http.StatusPermanentRedirect},
		{"192.0.2.9", forwarded, http.StatusPermanentRedirect},
		{"192.0.2.9", upgrade, http.StatusForbidden},
		{"192.0.2.9", "POST /relay/media HTTP/1.1\r\nHost: a.example:8787\r\nContent-Length: 0\r\n\r\n", http.StatusForbidden},
		{"192.0.2.9", "GET /x HTTP/1.0\r\n\r\n", http.StatusForbidden},
	} {
		p.from.peer.Store(&net.TCPAddr{IP: net.ParseIP(tt.peer), Port: 5})
		c := p.dial()
		if strings.HasPrefix(tt.request, "HEAD") {
			_, err := io.WriteString(c, tt.request)
			ok(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodHead})
			ok(t, err)
			if resp.StatusCode != tt.status {
				t.Errorf("%s: %q is answered with %s", tt.peer, tt.request, resp.Status)
			}
			continue
		}
		resp, body := ask(t, c, tt.request)
		if resp.StatusCode != tt.status {
			t.Errorf("%s: %q is answered with %s", tt.peer, tt.request, resp.Status)
		}
		if to := resp.Header.Get("Location"); tt.status == http.StatusPermanentRedirect && to != "https://a.example:8787/x?y=1" {
			t.Errorf("redirected to %q", to)
		}
		if tt.status == http.StatusForbidden && (!strings.Contains(body, "encrypted connections only") || !resp.Close) {
			t.Errorf("refused with %q", body)
		}
	}
	p.from.peer.Store(&net.TCPAddr{IP: net.ParseIP("192.0.2.9"), Port: 5})
	if _, body := ask(t, tls.Client(p.dial(), &tls.Config{InsecureSkipVerify: true}), plainGet); body != "served, encrypted: true" {
		t.Errorf("encrypted from elsewhere: %q", body)
	}
	if c, err := tls.Dial("tcp", p.one.Addr().String(), &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		_ = c.Close()
		t.Error("a stranger's trust is enough")
	}
	if c, err := tls.Dial("tcp", p.one.Addr().String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		_ = c.Close()
		t.Error("TLS 1.1 is spoken")
	}
}
