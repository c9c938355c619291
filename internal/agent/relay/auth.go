package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/strangers"
)

const (
	// tokenLife is what a gateway adds to its clock for exp (relay-facts §3).
	tokenLife = 300 * time.Second
	// tokenGrace is the clock difference that is allowed after exp.
	tokenGrace = 2 * time.Minute
	// tokenAhead is how far in the future exp may lie: tokenLife and a clock
	// that is five minutes fast.
	tokenAhead = 10 * time.Minute
	// maxBearer bounds what is decoded, in bytes.
	maxBearer = 4 << 10
)

// refusal says why a bearer was not accepted, in words for the owner. It never
// holds any part of the bearer but the id of a gateway that is configured.
type refusal struct {
	Gateway string // configured id, or empty
	Kind    RefusalKind
	Reason  string
	// Skew is the gateway's clock minus ours, where the signature was right.
	Skew time.Duration
}

// verify checks "Bearer <token>" (relay-facts §3): the token is base64url of
// "<id>:<exp>:<hex hmac_sha256("<id>:<exp>", secret)>", split from the right,
// because an id may contain colons. secret returns the secret of a gateway.
func verify(header string, secret func(id string) (string, bool), now time.Time) (id string, no *refusal) {
	scheme, token, ok := strings.Cut(strings.TrimSpace(header), " ")
	switch {
	case header == "":
		return "", &refusal{Kind: NoBearer, Reason: "no bearer: set both relay id and relay secret in the gateway"}
	case !ok || !strings.EqualFold(scheme, "Bearer") || len(token) > maxBearer:
		return "", &refusal{Kind: BadBearer, Reason: "not a bearer"}
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
	mac := hmac.New(sha256.New, []byte(key)) // also for an unknown id: no difference in time
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
		return "", &refusal{Gateway: payload, Kind: ClockOff, Skew: skew, Reason: fmt.Sprintf("the token is old: is the gateway's clock %s behind ours?", -skew)}
	case left > tokenAhead:
		return "", &refusal{Gateway: payload, Kind: ClockOff, Skew: skew, Reason: fmt.Sprintf("the token is from the future: is the gateway's clock %s ahead of ours?", skew)}
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

// authorize returns the gateway whose bearer the request carries, or nil when it
// has been answered with 401.
func (a *Agent) authorize(w http.ResponseWriter, r *http.Request) *gateway {
	gws := a.routes.Load().byID
	headers := r.Header.Values("Authorization")
	header := ""
	if len(headers) == 1 {
		header = headers[0]
	}
	id, no := verify(header, func(id string) (string, bool) {
		g, ok := gws[id]
		if !ok {
			return "", false
		}
		return g.config().Secret, true
	}, a.now())
	if no == nil {
		strangers.Admit(r.Context())
		return gws[id]
	}
	a.refused(r, no)
	w.Header().Set("WWW-Authenticate", "Bearer")
	http.Error(w, "unauthorized", http.StatusUnauthorized)
	return nil
}

func (a *Agent) refused(r *http.Request, no *refusal) {
	a.count(CountRefused, no.Gateway)
	from := a.opt.From(r)
	a.mu.Lock()
	a.lastRefusal = &Refusal{At: a.now(), Gateway: no.Gateway, Kind: no.Kind, From: from, Reason: no.Reason, Skew: no.Skew}
	a.refusedLast[no.Gateway] = *a.lastRefusal
	a.refusals++
	n := a.refusals
	a.mu.Unlock()
	path := r.URL.Path
	if strings.HasPrefix(path, mediaPath) {
		path = mediaPath // what follows names a file, or is as long as a stranger likes
	}
	a.log.Warn("relay: a gateway was refused", "gateway", no.Gateway, "reason", no.Reason, "addr", from,
		"path", path, "clock_difference", no.Skew, "refused_so_far", n)
}
