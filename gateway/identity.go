package gateway

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Identity is what the client learned about a gateway on the first verified route. The client uses
// it to check whether another address leads to the same gateway.
//
// A Hermes gateway cannot prove its identity (doc/hermes/api.md §2). TLS or a pinned key does that.
// Identity keeps apart two gateways of the same user.
type Identity struct {
	Platform string `json:"platform"`
	Model    string `json:"model"`             // one for each Hermes profile
	Auth     string `json:"auth,omitempty"`    // type of credential that the gateway asks for
	Shape    string `json:"shape,omitempty"`   // hash of the sorted names of endpoints and features
	Version  string `json:"version,omitempty"` // from GET /health
	ID       string `json:"id,omitempty"`      // instance_id; empty if the gateway sends none

	RemoteKey string `json:"remote_key,omitempty"` // SHA-256 of the public key if it is pinned or self-signed
	LocalKey  string `json:"local_key,omitempty"`
}

// shape returns a hash of what the gateway offers. Two gateways with the same version and
// configuration have the same shape.
func (c *Capabilities) shape() string {
	names := append(slices.Sorted(maps.Keys(c.endpoints)), "")
	names = append(names, slices.Sorted(maps.Keys(c.features))...)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:16])
}

// observedIdentity returns the identity that a route shows. key is that of its certificate if it is
// pinned or self-signed.
func observedIdentity(caps *Capabilities, kind RouteKind, key string) Identity {
	id := Identity{Platform: caps.Platform, Model: caps.Model, Auth: caps.Auth, Shape: caps.shape(), Version: caps.Version, ID: caps.ID}
	if kind == Local {
		id.LocalKey = key
	} else {
		id.RemoteKey = key
	}
	return id
}

// matchIdentity compares what a route shows with what was learned, and returns the identity to
// store. A new version with other features is accepted on Remote only, the address that the user
// chose as the anchor. Local is used again once Remote has confirmed it. Keys were compared before,
// in the handshake.
func matchIdentity(known *Identity, now Identity, kind RouteKind) (Identity, error) {
	if known == nil {
		return now, nil
	}
	other := func(what string) (Identity, error) {
		return *known, &identityError{what + " is not the one learned before"}
	}
	switch {
	case now.Platform != known.Platform:
		return other("its platform")
	case now.Model != known.Model:
		return other("its model")
	case known.ID != "" && now.ID != known.ID:
		return other("its instance ID")
	case now.Shape != known.Shape && now.Version == known.Version:
		return other("its list of operations and features")
	case now.Shape != known.Shape && kind == Local:
		return *known, &identityError{"it has a version that the remote address has not confirmed yet"}
	}
	now.RemoteKey, now.LocalKey = cmp.Or(now.RemoteKey, known.RemoteKey), cmp.Or(now.LocalKey, known.LocalKey)
	return now, nil
}

// identityError says what differs. It is [ErrIdentity].
type identityError struct{ what string }

func (e *identityError) Error() string        { return ErrIdentity.Error() + ": " + e.what }
func (e *identityError) Is(target error) bool { return target == ErrIdentity }

// plainVersion checks that a version is safe to print: it comes from a server that is not verified
// yet.
func plainVersion(version string) (string, error) {
	if len(version) > 64 {
		return "", errors.New("gateway: version is longer than 64 bytes")
	}
	for _, r := range version {
		if r <= ' ' || r > '~' {
			return "", errors.New("gateway: version contains characters other than printable ASCII")
		}
	}
	return version, nil
}
