package acme

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/server"
	"hermes-mobile/test/gateway"
	"hermes-mobile/test/port"
)

func (s *program) state() cert.State {
	s.t.Helper()
	var st server.Status
	s.command(&st, "status")
	return st.TLS
}

// certificate waits for one that is not the given one.
func (s *program) certificate(old string) cert.State {
	s.t.Helper()
	var st cert.State
	until(s.t, "a certificate", func() bool {
		st = s.state()
		return st.Leaf != "" && st.Leaf != old
	})
	return st
}

func (s *program) dialer() func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(s.port))
	}
}

// talk has a phone that trusts these roots and nothing else connect, say something and hear the answer.
func (s *program) talk(id string, roots *x509.CertPool, text, answer string) {
	s.t.Helper()
	var inv server.Invitation
	s.command(&inv, "pair")
	if want := fmt.Sprintf("https://%s:%d/#pair=%s", name, s.port, inv.Code); inv.Link != want || inv.Fingerprint != "" {
		s.t.Errorf("the link is %s with the fingerprint %q, want %s", inv.Link, inv.Fingerprint, want)
	}
	d, err := device.Open(s.t.Context(), device.Config{URL: inv.Address, PairCode: inv.Code, Device: frame.Device{ID: id}, TLS: &tls.Config{RootCAs: roots}, DialContext: s.dialer()})
	ok(s.t, err)
	defer d.Close(s.t.Context())
	_, err = d.Send(s.t.Context(), text)
	ok(s.t, err)
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for e, err := range d.Events(ctx) {
		ok(s.t, err)
		if m, is := e.(device.Message); is && m.Final {
			if m.Text != answer {
				s.t.Errorf("%q is answered with %q", text, m.Text)
			}
			return
		}
	}
	s.t.Fatalf("the phone got no answer: %+v", d.Status())
}

// The ACME server is down when the server starts, which serves all the same; later the certificate comes by itself. A
// restart uses it, without an ACME server. The name is checked over TLS.
func TestCertificateComesByItself(t *testing.T) {
	t.Parallel()
	port := port.Free(t)
	a := newAuthority(t, 1, port, 90*24*time.Hour) // nothing listens on port 1
	s := newServer(t, port, a)
	s.begin()
	until(t, "the failure to be told", func() bool { return s.state().LastError != "" })
	if st := s.state(); st.Mode != cert.Auto || !st.NotAfter.IsZero() || st.LastErrorAt.IsZero() {
		t.Errorf("without a certificate: %+v", st)
	}
	if c, err := tls.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port), &tls.Config{ServerName: name}); err == nil {
		_ = c.Close()
		t.Error("there is a certificate before there can be one")
	}

	a.begin()
	first := s.certificate("")
	if len(first.Names) != 1 || first.Names[0] != name || first.LastError != "" || time.Until(first.NotAfter) < 80*24*time.Hour {
		t.Errorf("the certificate: %+v", first)
	}
	roots := a.roots()
	s.talk("tel-1", roots, "hello", "You said: hello")

	s.end(syscall.SIGTERM)
	a.end(syscall.SIGTERM)
	s.begin()
	if st := s.state(); st.Leaf != first.Leaf {
		t.Errorf("after a restart there is another certificate: %+v", st)
	}
	s.talk("tel-2", roots, "hello", "You said: hello")
}

// A certificate that ends soon is replaced while the server runs, and a phone sees the new one. The name is checked over
// plain HTTP on the server's own port. The gateway is beside the server and dials it by plain HTTP, as without TLS.
func TestRenewal(t *testing.T) {
	t.Parallel()
	port := port.Free(t)
	a := newAuthority(t, port, 1, 10*time.Minute)
	a.begin()
	s := newServer(t, port, a)
	const id, secret = "gw-acme", "0123456789abcdef0123456789abcdef"
	s.env = append(s.env, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID="+id, "MOBILE_RELAY_SECRET="+secret)
	s.begin()
	gw := gateway.New(gateway.Config{URL: "http://127.0.0.1:" + strconv.Itoa(port), ID: id, Secret: secret, Kind: true})
	defer gw.Close()
	first := s.certificate("")
	s.talk("tel-1", a.roots(), "echo 1 hello", "reply 1 hello")
	ok(t, s.cmd.Process.Signal(syscall.SIGHUP)) // look now, not in ten minutes
	second := s.certificate(first.Leaf)
	if second.NotAfter.Before(first.NotAfter) {
		t.Errorf("%+v was renewed to %+v", first, second)
	}
	s.talk("tel-2", a.roots(), "echo 2 hello", "reply 2 hello")
}
