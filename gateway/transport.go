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

// target is one address of the profile with its connections. It lives as long as the client.
type target struct {
	kind        RouteKind
	base        *url.URL
	http        *http.Client
	keys        atomic.Pointer[string] // of the newest certificate that is pinned or self-signed
	stepTimeout time.Duration          // for each step of verifying it
}

// newTarget builds the HTTP client of an address. It uses HTTP/1.1 without compression, so that
// streams arrive without delay. It follows no redirect. It uses no proxy, which could read plain
// HTTP.
func (c *Client) newTarget(kind RouteKind, base *url.URL, pin string, wait time.Duration) *target {
	t := &target{kind: kind, base: base, stepTimeout: wait}
	config := &tls.Config{RootCAs: c.options.RootCAs, MinVersion: tls.VersionTLS12}
	config.InsecureSkipVerify = pin != "" // VerifyConnection below checks the pinned key instead
	config.VerifyConnection = func(state tls.ConnectionState) error {
		leaf := state.PeerCertificates[0] // a TLS server always has one
		selfSigned := len(state.VerifiedChains) > 0 && len(state.VerifiedChains[0]) == 1
		if pin == "" && !selfSigned {
			t.keys.Store(nil)
			return nil
		}
		key := KeyPin(leaf)
		if pin != "" && key != pin {
			return &identityError{"its public key is not the pinned one"}
		}
		if known := c.account.knownKey(kind); known != "" && known != key && pin == "" {
			return &identityError{"its public key is not the one learned before"}
		}
		t.keys.Store(&key)
		return nil
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		if base.Scheme == "https" {
			return c.dial(ctx, network, address)
		}
		return c.dialPlain(ctx, t, network, address)
	}
	t.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: 15 * time.Second,
			DisableCompression: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		},
	}
	return t
}

// key returns the public key of the certificate if it is pinned or self-signed.
func (t *target) key() string {
	if key := t.keys.Load(); key != nil {
		return *key
	}
	return ""
}

// KeyPin returns the pin of a certificate: the SHA-256 of its public key (SubjectPublicKeyInfo) in
// hexadecimal. It stays the same when the certificate is renewed with the same key.
func KeyPin(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// normalPin parses a pin: hexadecimal with or without colons, or base64 as in RFC 7469, with an
// optional prefix "sha256:" or "sha256/". It returns "" for a malformed pin.
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

// dial connects, and tracks the connection so that Close ends it.
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

// dialPlain connects without TLS. Nothing proves the host's identity then: the phone may have
// joined another network, where the same address belongs to another host. So each connection must
// show that a Hermes gateway answers before a credential is sent over it.
func (c *Client) dialPlain(ctx context.Context, t *target, network, address string) (net.Conn, error) {
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
		return raw, nil // other servers have no health check of a known form
	}
	if err := raw.SetDeadline(time.Now().Add(t.stepTimeout)); err != nil {
		raw.Close()
		return nil, err
	}
	keep, err := verifyPlainConn(ctx, t, raw)
	if err == nil {
		err = raw.SetDeadline(time.Time{})
	}
	if err != nil || !keep {
		raw.Close()
	}
	if err == nil && !keep { // the server closes after each response: trust the next connection, made a moment later
		return c.dial(ctx, network, address)
	}
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// verifyPlainConn sends a health request over a connection. keep reports whether the connection can
// be reused.
func verifyPlainConn(ctx context.Context, t *target, raw net.Conn) (keep bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) }) // fails on a closed connection only
	defer func() {
		if !stop() && err == nil { // the deadline has passed and would stay set
			err = ctx.Err()
		}
	}()
	req, err := healthRequest(ctx, t.base)
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
