package device

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"hermes-mobile/frame"
)

// Config says where to connect and as whom. URL, Device.ID and one of Token, PairCode or a token in the Store are needed;
// every other zero value means a good default.
type Config struct {
	// URL of the server: ws, wss, http or https. Without a path, /ws is meant. It must not hold a token (§1).
	URL string
	// Token of the app or the device. When set it is always used, never the one in the Store.
	Token string
	// PairCode is a one-time code (§8). It is used when Token is empty and the Store has no token, or when the server
	// refuses the Store's; the token the server gives for it goes into the Store.
	PairCode string
	// Device is this installation. Its ID, 1 to 128 characters of A-Z a-z 0-9 . _ - : @, must stay the same for ever.
	Device frame.Device
	// User owns the device. Default: the device id.
	User frame.User

	// NoDelta asks for whole texts while a reply streams instead of what was added. The events are the same.
	NoDelta bool
	// Tools asks for [Tool] events (§6).
	Tools bool
	// Notices asks for [Notice] events, which tell of new devices of the user (§8). Ask only where a person is shown them.
	Notices bool

	// Store keeps the cursor, the outgoing messages and the device's own token. Default: [NewMemoryStore], which
	// forgets them at the end of the process.
	Store Store

	// TLS is used for wss and https, as it is.
	TLS *tls.Config
	// Fingerprint pins the server's certificate, or the authority that has signed it and is sent along: the SHA-256 of the
	// DER form in hex, with or without colons. With it neither the name nor who else vouches is checked, so that a server
	// with an authority of its own works at any address. A pairing link has it as fingerprint (§8).
	Fingerprint string
	// DialContext opens the TCP connections. Default: net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// HTTPClient, when set, is used for everything instead of TLS, Fingerprint and DialContext.
	HTTPClient *http.Client
	// Header is sent with the upgrade, for a proxy that wants it. Never the token.
	Header http.Header

	// Backoff between attempts to connect.
	Backoff Backoff
	// Heartbeat: when nothing was heard for so long, the server is pinged. Default 30 s.
	Heartbeat time.Duration
	// PongTimeout: a connection whose ping is not answered for so long is dead. Default 15 s.
	PongTimeout time.Duration
	// DialTimeout bounds connecting and, again, the wait for ready. Default 15 s.
	DialTimeout time.Duration
	// ReceiptTimeout: a message that has no receipt after so long on a live connection is sent again. Default 30 s.
	ReceiptTimeout time.Duration
	// TypingLease: an indicator goes off so long after the last sign of work. Default 60 s.
	TypingLease time.Duration

	// QueueBytes is how much may wait for a slow Events loop, in bytes. Default 16 MiB.
	QueueBytes int
	// MaxFileBytes is the largest file taken in frames, in bytes; a larger one gives a [File] with Err. Default 64 MiB.
	MaxFileBytes int64

	// roomWait is how long a connection is not read because the Events loop has no room, before durable frames are left
	// to the server. It must stay well under the server's patience with a slow reader. Default 5 s.
	roomWait time.Duration
}

// Backoff is the wait between attempts: a random time up to Min·2ⁿ, at most Max ("full jitter"), n counting the attempts
// since a connection last held for Stable. Defaults 0.5 s, 30 s and 10 s.
type Backoff struct {
	Min, Max, Stable time.Duration
}

func (c *Config) fill() error {
	if !frame.ValidID(c.Device.ID) {
		return errors.New("device: Config.Device.ID must be 1 to 128 characters of A-Z a-z 0-9 . _ - : @")
	}
	if c.User.ID != "" && !frame.ValidID(c.User.ID) {
		return errors.New("device: Config.User.ID must be 1 to 128 characters of A-Z a-z 0-9 . _ - : @")
	}
	if c.Store == nil {
		c.Store = NewMemoryStore()
	}
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{
		{&c.Backoff.Min, 500 * time.Millisecond}, {&c.Backoff.Max, 30 * time.Second}, {&c.Backoff.Stable, 10 * time.Second},
		{&c.Heartbeat, 30 * time.Second}, {&c.PongTimeout, 15 * time.Second}, {&c.DialTimeout, 15 * time.Second},
		{&c.ReceiptTimeout, 30 * time.Second}, {&c.TypingLease, time.Minute}, {&c.roomWait, 5 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.zero
		}
	}
	if c.QueueBytes <= 0 {
		c.QueueBytes = 16 << 20
	}
	if c.MaxFileBytes <= 0 {
		c.MaxFileBytes = 64 << 20
	}
	return nil
}

// parseURL brings the address into the form that is dialled.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("device: %q is no address: write it like wss://agent.example.com/ws", redact(s))
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	default:
		return nil, fmt.Errorf("device: the address must begin with ws, wss, http or https, not %q", u.Scheme)
	}
	if u.Query().Has("token") || u.User != nil {
		return nil, errors.New("device: put the token into Config.Token, never into the address")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/ws"
	}
	u.Fragment = ""
	return u, nil
}

// redact keeps what may be a secret out of an error text: a user's password, a query, a pairing code after #.
func redact(s string) string {
	if i := strings.LastIndex(s, "@"); i >= 0 {
		s = "…" + s[i:]
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i] + "…"
	}
	return s
}
