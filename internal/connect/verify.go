package connect

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"hermes-mobile/gateway"
)

// probeTimeout bounds a probe of a host's key.
const probeTimeout = 5 * time.Second

// test runs the compatibility test. If it passes, test stores the profile and the credentials: nothing else
// leads to Done.
func (m *Machine) test(ctx context.Context) error {
	m.mu.Lock()
	p, creds, saved := m.draft, m.creds.For(m.draft), m.saved
	m.step = Test
	m.mu.Unlock()
	if list := problemsOf(p.Validate()); len(list) > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, err := range list {
			m.problems = append(m.problems, describe(err))
		}
		m.step = stepOf(list[0].Field)
		return nil
	}
	result, p, creds, err := m.runTest(ctx, p, creds, saved)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.result = &result
	if !result.Passed {
		return nil
	}
	if err := m.store(p, creds, saved); errors.Is(err, gateway.ErrSignIn) {
		m.step, m.problems = Unlock, []Problem{{Field: "passphrase", Code: Lost, Text: sentence(err)}}
		return nil
	} else if err != nil {
		return err
	}
	m.saved, m.draft, m.creds, m.step, m.legacy, m.noJobs = &p, p, creds, Done, false, result.noJobs
	return nil
}

func stepOf(field string) Step {
	switch field {
	case "remote", "insecure", "remote_key":
		return Remote
	case "local", "local_key":
		return Local
	}
	return Auth
}

// store stores the tested profile and credentials. The credentials come first: after a crash, a profile
// without them only asks to sign in.
func (m *Machine) store(p gateway.Profile, creds gateway.Credentials, before *gateway.Profile) error {
	if p.Auth != gateway.AuthNone {
		if err := m.o.Storage.SaveCredentials(p, creds); err != nil {
			return err
		}
	}
	if err := m.o.Storage.SaveProfile(p); err != nil {
		return err
	}
	if before != nil && (p.Auth == gateway.AuthNone || bindingOf(*before) != bindingOf(p)) {
		m.note(m.o.Storage.forget(*before)) // nothing uses the old account any more
	}
	return nil
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// explain describes why an address failed, and finds the key that the user may trust.
func (m *Machine) explain(ctx context.Context, a Attempt, address, pinned string, err error) Attempt {
	a.Text = sentence(err)
	a.Code = Invalid
	switch {
	case errors.Is(err, gateway.ErrSignIn):
		a.Code = SignIn
	case errors.Is(err, gateway.ErrIdentity):
		a.Code = Other
	}
	if a.Code == SignIn || a.Code == Other && !strings.HasPrefix(address, "https://") {
		return a
	}
	seen, probeErr := m.probe(ctx, address)
	if plain := new(tls.RecordHeaderError); errors.As(probeErr, plain) && strings.HasPrefix(string(plain.RecordHeader[:]), "HTTP/") {
		a.Code, a.Text = PlainHTTP, "The host speaks plain http. Use the address http://"+a.Host+"."
		return a
	}
	if code, text := unreached(errors.Join(probeErr, err)); code != "" && a.Code != Other {
		a.Code, a.Text = code, text
		return a
	}
	switch {
	case probeErr != nil || seen.pin == "":
	case pinned != "" && seen.pin != pinned:
		a.Code, a.Pin, a.Certificate, a.Text = KeyChanged, seen.pin, seen.says, "The host's key differs from the trusted one."
	case pinned == "" && seen.problem != "":
		a.Code, a.Pin, a.Certificate, a.Text = Certificate, seen.pin, seen.says, seen.problem
	}
	return a
}

// shown is the certificate of a host from a TLS handshake.
type shown struct {
	pin, says string
	problem   string // why it is not trusted
}

// unreached describes why a connection failed. The code is empty if it did not.
func unreached(err error) (Code, string) {
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return NoName, "The host name can't be resolved in this network."
	case errors.Is(err, syscall.ECONNREFUSED):
		return Unreachable, "Nothing listens at this address and port."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable, "The host is unreachable from this network."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Slow, "The host did not answer in time."
	}
	return "", ""
}

// probe connects to a host, and makes a TLS handshake if the address is https. It sends nothing else.
func (m *Machine) probe(ctx context.Context, address string) (s shown, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	port := u.Port()
	if u.Scheme != "https" {
		var d net.Dialer
		if port == "" {
			port = "80"
		}
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
		if err == nil {
			_ = c.Close() // nothing was sent
		}
		return s, err
	}
	if port == "" {
		port = "443"
	}
	d := tls.Dialer{Config: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, // verified below, to describe the problem
	}}
	raw, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return s, err
	}
	defer raw.Close()
	chain := raw.(*tls.Conn).ConnectionState().PeerCertificates
	leaf := chain[0] // a TLS server always sends one
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err = leaf.Verify(x509.VerifyOptions{DNSName: u.Hostname(), Roots: m.o.RootCAs, Intermediates: between})
	s.pin, s.says = gateway.KeyPin(leaf), saysOf(leaf)
	var (
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	switch {
	case err == nil:
	case errors.As(err, &name):
		s.problem = "The certificate is for another name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		s.problem = "The certificate isn't valid at this time: it has expired, or a clock is wrong."
	case leaf.Issuer.String() == leaf.Subject.String():
		s.problem = "The certificate is self-signed."
	default:
		s.problem = "The certificate isn't from a CA that this machine trusts."
	}
	return s, nil
}

// saysOf describes a certificate briefly, so that a user can compare it.
func saysOf(c *x509.Certificate) string {
	names := c.DNSNames
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 {
		names = []string{c.Subject.CommonName}
	}
	if len(names) > 4 {
		names = append(names[:4:4], "…")
	}
	return fmt.Sprintf("%s, valid until %s", plain(strings.Join(names, ", ")), c.NotAfter.UTC().Format("2 January 2006"))
}

// plain removes control characters, because the text comes from a stranger.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
