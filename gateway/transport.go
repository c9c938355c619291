package gateway

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

const userAgent = "hermes-mobile-gateway/1"

// link is one address of the profile with its connections. There is one for each kind of route as long as the client lives.
type target struct {
	kind        RouteKind
	base        *url.URL
	http        *http.Client
	keys        atomic.Pointer[string] // of the newest certificate that stands for itself
	stepTimeout time.Duration          // for each step of proving
}

// newLink builds the HTTP client of an address. It speaks HTTP/1.1 without compression (a stream is passed on byte by byte),
// follows no redirect, and uses no proxy: a proxy would see what is sent in plain http.
func (c *Client) newTarget(kind RouteKind, base *url.URL, pin string, wait time.Duration) *target {
	l := &target{kind: kind, base: base, stepTimeout: wait}
	config := &tls.Config{RootCAs: c.options.RootCAs, MinVersion: tls.VersionTLS12}
	config.InsecureSkipVerify = pin != "" // the pinned key is what is verified instead, below
	config.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0] // TLS has no server without one
		selfSigned := len(state.VerifiedChains) > 0 && len(state.VerifiedChains[0]) == 1
		if pin == "" && !selfSigned {
			l.keys.Store(nil)
			return nil
		}
		key := KeyPin(leaf)
		if pin != "" && key != pin {
			return &identityError{"its public key is not the pinned one"}
		}
		if known := c.account.knownKey(kind); known != "" && known != key && pin == "" {
			return &identityError{"its public key is not the one learned before"}
		}
		l.keys.Store(&key)
		return nil
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if base.Scheme == "https" {
			return c.dial(ctx, network, address)
		}
		return c.dialPlain(ctx, l, network, address)
	}
	l.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 15 * time.Second,
			DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		},
	}
	return l
}

// key is that of the certificate, where it is pinned or self-signed.
func (l *target) key() string {
	if key := l.keys.Load(); key != nil {
		return *key
	}
	return ""
}

// KeyPin is the pin of a certificate: SHA-256 of its public key (SubjectPublicKeyInfo) in hexadecimal digits. It stays the
// same when the certificate is renewed with its key.
func KeyPin(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// normalPin reads a pin: hexadecimal, with colons or without, or base64 as in RFC 7469, with sha256: or sha256/ in front. A
// malformed one is empty.
func normalPin(pin string) string {
	for _, prefix := range []string{"sha256:", "sha256/", "SHA256:"} {
		pin = strings.TrimPrefix(pin, prefix)
	}
	if sum, err := hex.DecodeString(strings.ReplaceAll(pin, ":", "")); err == nil && len(sum) == sha256.Size {
		return hex.EncodeToString(sum)
	}
	if sum, err := base64.StdEncoding.DecodeString(pin); err == nil && len(sum) == sha256.Size {
		return hex.EncodeToString(sum)
	}
	return ""
}

// dial connects, and keeps the connection so that Close ends it.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !c.conns.beginDial() {
		return nil, ErrClosed
	}
	defer c.conns.endDial()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	connect := c.options.Dial
	if connect == nil {
		connect = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6}}).DialContext
	}
	raw, err := connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return c.conns.track(raw)
}

// dialPlain connects without TLS. Nothing vouches for the host then: the phone may have moved to another network where the
// same address is somebody else's. So each connection shows that a Hermes gateway is at its end before a credential goes
// over it.
func (c *Client) dialPlain(ctx context.Context, l *target, network, address string) (net.Conn, error) {
	raw, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	peer, err := netip.ParseAddrPort(raw.RemoteAddr().String())
	if err != nil || !plainAllowed(peer.Addr(), c.insecure) {
		raw.Close()
		return nil, errPlain
	}
	if c.kind == OpenAI {
		return raw, nil // has no health of a known form
	}
	if err := raw.SetDeadline(time.Now().Add(l.stepTimeout)); err != nil {
		raw.Close()
		return nil, err
	}
	keep, err := verifyPlainConn(ctx, l, raw)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil || !keep {
		raw.Close()
	}
	if err == nil && !keep { // one answer a connection: the next one is as good as this, a moment later
		return c.dial(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// proveLine asks for the health over a connection, and says whether that can be used on.
func verifyPlainConn(ctx context.Context, l *target, raw net.Conn) (keep bool, err error) {
	stop := context.AfterFunc(ctx, func() { raw.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		if !stop() && err == nil { // the deadline is past and would stay so
			err = ctx.Err()
		}
	}()
	req, err := healthRequest(ctx, l.base)
	if err != nil {
		return false, err
	}
	if err := req.Write(raw); err != nil {
		return false, err
	}
	reader := bufio.NewReader(raw)
	resp, err := http.ReadResponse(reader, req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if _, err := readHealth(resp); err != nil {
		return false, err
	}
	return !resp.Close && reader.Buffered() == 0, nil
}
