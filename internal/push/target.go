package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// Kinds of endpoints.
const (
	WebPush     = "webpush"
	UnifiedPush = "unifiedpush"
)

// Target is an endpoint that a device has registered.
type Target struct {
	Kind     string  `json:"kind"`
	Endpoint string  `json:"endpoint"`
	Keys     *Secret `json:"keys,omitempty"`
	Content  bool    `json:"content,omitempty"` // notifications may contain text of messages
	Quiet    *Quiet  `json:"quiet,omitempty"`
}

// Secret holds the keys of a subscription: its public key and the secret shared with the sender, in
// base64url.
type Secret struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Encrypted reports whether only the device can read notifications to the target.
func (t Target) Encrypted() bool { return t.Keys != nil }

// Host returns the part of the endpoint that may be shown.
func (t Target) Host() string {
	u, err := url.Parse(t.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// maxEndpoint bounds the length of an endpoint.
const maxEndpoint = 2048

// Check returns an error for a malformed or forbidden target.
func (s *Sender) Check(t Target) error {
	if t.Kind != WebPush && t.Kind != UnifiedPush {
		return errors.New(`"kind" must be webpush or unifiedpush`)
	}
	u, err := url.Parse(t.Endpoint)
	switch {
	case t.Endpoint == "" || err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New(`"endpoint" must be an https address`)
	case len(t.Endpoint) > maxEndpoint:
		return errors.New(`"endpoint" is longer than 2048 characters`)
	case u.User != nil || strings.Contains(t.Endpoint, "#"):
		return errors.New(`"endpoint" may hold no name, password or part after "#"`)
	case u.Scheme == "http" && !s.listed(u.Hostname()):
		return errors.New(`"endpoint" must be an https address: plain http is for hosts that the owner has listed in MOBILE_PUSH_HOSTS`)
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !Public(a) && !s.listed(u.Hostname()) {
		return &forbiddenError{a.String()}
	}
	switch {
	case t.Keys != nil:
		return t.Keys.check()
	case t.Kind == WebPush:
		return errors.New(`"keys" with p256dh and auth are needed for webpush`)
	}
	return nil
}

func (k *Secret) check() error {
	point, err := decode(k.P256dh)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return errors.New(`"keys.p256dh" must be a public key on the curve P-256, 65 bytes in base64url`)
	}
	if auth, err := decode(k.Auth); err != nil || len(auth) != 16 {
		return errors.New(`"keys.auth" must be 16 bytes in base64url`)
	}
	return nil
}

// decode decodes base64url, with or without padding.
func decode(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}
