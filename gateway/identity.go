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

// Identity is what was learnt of a gateway on the first route that was proven. It tells later whether another address leads
// to the same gateway. A Hermes gateway gives no unforgeable proof of itself (api-facts §2), so TLS or a pinned key does the
// proving, and Identity keeps apart what a person may mix up: two gateways of their own.
type Identity struct {
	Platform string `json:"platform"`
	Model    string `json:"model"`             // one for each Hermes profile
	Auth     string `json:"auth,omitempty"`    // type of credential the gateway asks for
	Shape    string `json:"shape,omitempty"`   // hash of the sorted names of endpoints and features
	Version  string `json:"version,omitempty"` // of GET /health
	ID       string `json:"id,omitempty"`      // instance_id, where a gateway offers one

	RemoteKey string `json:"remote_key,omitempty"` // SHA-256 of the public key, where it is pinned or self-signed
	LocalKey  string `json:"local_key,omitempty"`
}

// shape is a hash of what is offered. Two gateways of one version and one configuration have the same.
func (c *Capabilities) shape() string {
	names := append(slices.Sorted(maps.Keys(c.endpoints)), "")
	names = append(names, slices.Sorted(maps.Keys(c.features))...)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	return hex.EncodeToString(sum[:16])
}

// seen is the identity that a route shows. key is that of its certificate, where that stands for itself.
func observedIdentity(caps *Capabilities, kind RouteKind, key string) Identity {
	id := Identity{Platform: caps.Platform, Model: caps.Model, Auth: caps.Auth, Shape: caps.shape(), Version: caps.Version, ID: caps.ID}
	if kind == Local {
		id.LocalKey = key
	} else {
		id.RemoteKey = key
	}
	return id
}

// recognize compares what a route shows with what was learnt, and returns what is known after that. A new version that
// offers something else is taken over on Remote only, the address that the person chose as the anchor; Local is used again
// when Remote has confirmed it. Keys were compared before, in the handshake.
func matchIdentity(learnt *Identity, now Identity, kind RouteKind) (Identity, error) {
	if learnt == nil {
		return now, nil
	}
	other := func(what string) (Identity, error) {
		return *learnt, &identityError{what + " is not the one learned before"}
	}
	switch {
	case now.Platform != learnt.Platform:
		return other("its platform")
	case now.Model != learnt.Model:
		return other("its model")
	case learnt.ID != "" && now.ID != learnt.ID:
		return other("its instance ID")
	case now.Shape != learnt.Shape && now.Version == learnt.Version:
		return other("its list of operations and features")
	case now.Shape != learnt.Shape && kind == Local:
		return *learnt, &identityError{"it has a version that the remote address has not confirmed yet"}
	}
	now.RemoteKey, now.LocalKey = cmp.Or(now.RemoteKey, learnt.RemoteKey), cmp.Or(now.LocalKey, learnt.LocalKey)
	return now, nil
}

// identityError says what differs. It is ErrIdentity.
type identityError struct{ what string }

func (e *identityError) Error() string        { return ErrIdentity.Error() + ": " + e.what }
func (e *identityError) Is(target error) bool { return target == ErrIdentity }

// plainVersion keeps a version fit for printing: it comes from an answer that nobody has vouched for yet.
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
