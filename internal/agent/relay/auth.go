package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const (
	// tokenLife is what a gateway adds to its clock for exp (doc/hermes/relay.md §3).
	tokenLife = 300 * time.Second
	// tokenGrace is the difference of clocks that is allowed after exp.
	tokenGrace = 2 * time.Minute
	// tokenAhead is how far in the future exp may be: tokenLife and a clock that is five minutes fast.
	tokenAhead = 10 * time.Minute
	// maxBearer bounds a token in bytes.
	maxBearer = 4 << 10
)

// Refusal describes a connection or request that was rejected.
type Refusal struct {
	At      time.Time
	Gateway string // where it could be identified and is configured
	Kind    RefusalKind
	From    string
	Reason  string
	Skew    time.Duration // the gateway's clock minus ours, where the signature was right
}

// RefusalKind says what is wrong with a bearer token.
type RefusalKind string

// The kinds of refusals.
const (
	NoBearer    RefusalKind = "no bearer" // the gateway has no id and secret
	BadBearer   RefusalKind = "bad bearer"
	UnknownID   RefusalKind = "unknown id"
	WrongSecret RefusalKind = "wrong secret"
	ClockOff    RefusalKind = "clock off" // the token is too old or from the future
)

// refusal says why a bearer token was rejected, in words for the owner. It never holds any part of the
// token except the id of a gateway that is configured.
type refusal struct {
	Gateway string // configured id, or empty
	Kind    RefusalKind
	Reason  string
	Skew    time.Duration // see Refusal
}

// verify checks "Bearer <token>" (doc/hermes/relay.md §3). The token is the base64url of
// "<id>:<exp>:<hex hmac_sha256("<id>:<exp>", secret)>". It is split from the right because an id may
// contain colons. secret returns the secret of a gateway.
func verify(header string, secret func(id string) (string, bool), now time.Time) (id string, no *refusal) {
	scheme, token, ok := strings.Cut(strings.TrimSpace(header), " ")
	switch {
	case header == "":
		return "", &refusal{Kind: NoBearer, Reason: "no bearer token: set both relay id and relay secret in the gateway"}
	case !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxBearer:
		return "", &refusal{Kind: BadBearer, Reason: "not a bearer token"}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(token), "="))
	if err != nil {
		return "", &refusal{Kind: BadBearer, Reason: "malformed token"}
	}
	signed, sig, ok := cutLast(string(raw))
	if !ok {
		return "", &refusal{Kind: BadBearer, Reason: "malformed token"}
	}
	payload, expText, ok := cutLast(signed)
	exp, err := strconv.ParseInt(expText, 10, 64)
	if !ok || err != nil || payload == "" {
		return "", &refusal{Kind: BadBearer, Reason: "malformed token"}
	}
	key, known := secret(payload)
	mac := hmac.New(sha256.New, []byte(key)) // also for an unknown id, so that it takes as long
	mac.Write([]byte(signed))
	want := hex.AppendEncode(nil, mac.Sum(nil))
	same := hmac.Equal(want, []byte(sig))
	switch {
	case !known || key == "":
		return "", &refusal{Kind: UnknownID, Reason: "unknown gateway id"}
	case !same:
		return "", &refusal{Gateway: payload, Kind: WrongSecret, Reason: "wrong secret"}
	}
	skew := time.Unix(exp, 0).Add(-tokenLife).Sub(now).Round(time.Second)
	switch left := time.Unix(exp, 0).Sub(now); {
	case left < -tokenGrace:
		return "", &refusal{Gateway: payload, Kind: ClockOff, Skew: skew, Reason: fmt.Sprintf("token expired: the gateway's clock may be %s behind ours", -skew)}
	case left > tokenAhead:
		return "", &refusal{Gateway: payload, Kind: ClockOff, Skew: skew, Reason: fmt.Sprintf("token from the future: the gateway's clock may be %s ahead of ours", skew)}
	}
	return payload, nil
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", "", false
	}
	return s[:i], s[i+1:], true
}
