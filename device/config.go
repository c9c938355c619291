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

// Config tells where to connect and as whom. It needs URL, Device.ID, and one of Token, PairCode or
// a token in the Store. Every other zero value stands for a good default.
type Config struct {
	// URL of the server: ws, wss, http or https. The default path is /ws. It must not contain a
	// token (doc/protocol.md §1).
	URL string
	// Token of the app or the device. It takes precedence over the one in the Store.
	Token string
	// PairCode is a pairing code (doc/protocol.md §8), which works once. The device uses it when
	// Token is empty and the Store has no token, or when the server rejects that token. The token
	// that the server gives in return goes into the Store.
	PairCode string
	// Device is this installation. Its ID must never change; frame.ValidID tells which ids are
	// valid.
	Device frame.Device
	// User owns the device. Default: a user with the id of the device.
	User frame.User

	// NoDelta requests whole texts while a reply streams, instead of additions. The events are the
	// same.
	NoDelta bool
	// Tools requests [Tool] events (doc/protocol.md §6).
	Tools bool
	// Notices requests [Notice] events, which report new devices of the user (doc/protocol.md §8).
	// Set it only where a person sees them.
	Notices bool

	// Store holds the cursor, the outgoing messages and the device's own token. Default:
	// [NewMemoryStore], which forgets them at the end of the process.
	Store Store

	// TLS configures wss and https.
	TLS *tls.Config
	// Fingerprint pins the server's certificate, or the CA that signed it and that the server sends
	// along: the SHA-256 of the DER form in hex, with or without colons. The device then checks
	// neither the name nor any other CA, so a server with its own CA works at any address. A
	// pairing link contains it as fingerprint (doc/protocol.md §8).
	Fingerprint string
	// DialContext opens the TCP connections. Default: net.Dialer.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// HTTPClient, when set, replaces TLS, Fingerprint and DialContext.
	HTTPClient *http.Client
	// Header goes out with the upgrade, for a proxy that needs it. It must not contain the token.
	Header http.Header

	// Backoff between attempts to connect.
	Backoff Backoff
	// Heartbeat is how long the server may be quiet before the device pings it. Default 30 s.
	Heartbeat time.Duration
	// PongTimeout is how long the device waits for the answer to a ping before it reconnects.
	// Default 15 s.
	PongTimeout time.Duration
	// DialTimeout limits the time to connect, and again the time to ready. Default 15 s.
	DialTimeout time.Duration
	// AckTimeout is how long the device waits for the ack of a message on a live connection before
	// it sends the message again. Default 30 s.
	AckTimeout time.Duration
	// TypingTimeout is how long the typing indicator stays on after the last sign of work. Default
	// 60 s.
	TypingTimeout time.Duration

	// QueueBytes limits the events that wait for a slow Events loop, in bytes. Default 16 MiB.
	QueueBytes int
	// MaxFileBytes is the largest file to accept in frames, in bytes. A larger one gives a [File]
	// with Err. Default 64 MiB.
	MaxFileBytes int64

	// roomWait is how long the device stops reading while the inbox is full, before it leaves
	// durable frames to the server. It must stay well below the server's timeout for a slow reader.
	// Default 5 s.
	roomWait time.Duration
}

// Backoff is the wait between attempts: a random time between half of d and d, where d is Min·2ⁿ
// and at most Max. The exponent n counts the attempts since a connection last stayed up for Stable.
// The defaults are 0.5 s, 30 s and 10 s.
type Backoff struct {
	Min, Max, Stable time.Duration
}

func (c *Config) fill() error {
	if !frame.ValidID(c.Device.ID) {
		return fmt.Errorf("device: Config.Device.ID must be 1 to %d characters of A-Z a-z 0-9 . _ - : @", frame.MaxID)
	}
	if c.User.ID != "" && !frame.ValidID(c.User.ID) {
		return fmt.Errorf("device: Config.User.ID must be 1 to %d characters of A-Z a-z 0-9 . _ - : @", frame.MaxID)
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
		{&c.AckTimeout, 30 * time.Second}, {&c.TypingTimeout, time.Minute}, {&c.roomWait, 5 * time.Second},
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

// parseURL returns the address to dial.
func parseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("device: %q is not an address: write it like wss://agent.example.com/ws", redact(s))
	}
	switch u.Scheme {
	case "ws", "wss":
	case "http":
		u.Scheme = "ws"
	case "https":
		u.Scheme = "wss"
	default:
		return nil, fmt.Errorf("device: the address must begin with ws://, wss://, http:// or https://, not %q", u.Scheme+":")
	}
	if u.Query().Has("token") || u.User != nil {
		return nil, errors.New("device: put the token into Config.Token, not into the address")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/ws"
	}
	u.Fragment = ""
	return u, nil
}

// redact removes possible secrets from an error text: a password, a query, a pairing code after #.
func redact(s string) string {
	if i := strings.LastIndex(s, "@"); i >= 0 {
		s = "…" + s[i:]
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i] + "…"
	}
	return s
}
