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

// lookTime bounds the look at the key of a host.
const lookTime = 5 * time.Second

// test runs the compatibility test, and where it has passed stores the profile and the credentials: the only way to Done.
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
	result, p, creds, err := m.try(ctx, p, creds, saved)
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

// store keeps what has passed. The credentials come first: a profile without them asks to sign in, and that is all.
func (m *Machine) store(p gateway.Profile, creds gateway.Credentials, before *gateway.Profile) error {
	if p.Auth != gateway.AuthNone {
		if err := m.o.Keep.SaveCredentials(p, creds); err != nil {
			return err
		}
	}
	if err := m.o.Keep.SaveProfile(p); err != nil {
		return err
	}
	if before != nil && (p.Auth == gateway.AuthNone || bindingOf(*before) != bindingOf(p)) {
		m.note(m.o.Keep.forget(*before)) // an old account is of no use to anybody
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

// explain says in plain words why an address cannot be used, and finds the key that the person may trust.
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
	seen, lookErr := m.look(ctx, address)
	if plain := new(tls.RecordHeaderError); errors.As(lookErr, plain) && strings.HasPrefix(string(plain.RecordHeader[:]), "HTTP/") {
		a.Code, a.Text = PlainHTTP, "It speaks plain http: write the address as http://"+a.Host+"."
		return a
	}
	if code, text := unreached(errors.Join(lookErr, err)); code != "" && a.Code != Other {
		a.Code, a.Text = code, text
		return a
	}
	switch {
	case lookErr != nil || seen.pin == "":
	case pinned != "" && seen.pin != pinned:
		a.Code, a.Pin, a.Certificate, a.Text = KeyChanged, seen.pin, seen.says, "The host shows another key than the one that was trusted."
	case pinned == "" && seen.problem != "":
		a.Code, a.Pin, a.Certificate, a.Text = Certificate, seen.pin, seen.says, seen.problem
	}
	return a
}

// shown is what a host shows of itself in a TLS handshake.
type shown struct {
	pin, says string
	problem   string // why nobody vouches for it
}

// unreached says in plain words why there was no connection; the code is empty where there was one.
func unreached(err error) (Code, string) {
	var name *net.DNSError
	switch {
	case errors.As(err, &name):
		return NoName, "The name of the host is not known in this network."
	case errors.Is(err, syscall.ECONNREFUSED):
		return Unreachable, "No program answers at this address and port."
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable, "The host cannot be reached from this network."
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return Slow, "The host did not answer in time."
	}
	return "", ""
}

// look connects to a host, makes a TLS handshake where its address begins with https, and sends nothing over it.
func (m *Machine) look(ctx context.Context, address string) (s shown, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return s, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
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
		InsecureSkipVerify: true, // it is verified below, to say what is wrong with it
	}}
	raw, err := d.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return s, err
	}
	defer raw.Close()
	chain := raw.(*tls.Conn).ConnectionState().PeerCertificates
	leaf := chain[0] // TLS has no server without one
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
		s.problem = "Its certificate is for another name."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		s.problem = "Its certificate is not valid at this time: it ran out, or a clock is wrong."
	case leaf.Issuer.String() == leaf.Subject.String():
		s.problem = "Its certificate is signed by itself, so nobody vouches for it."
	default:
		s.problem = "Nobody that this machine knows vouches for its certificate."
	}
	return s, nil
}

// saysOf describes a certificate in a few words, for a person who compares.
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
	return fmt.Sprintf("%s, until %s", plain(strings.Join(names, ", ")), c.NotAfter.UTC().Format("2 January 2006"))
}

// plain keeps control characters of a stranger out of what is shown.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, s)
}
