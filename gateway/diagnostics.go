package gateway

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFailures is the number of failures that are kept.
const maxFailures = 20

// RouteFailure is a failure that made the client reject or leave a route.
type RouteFailure struct {
	At      time.Time `json:"at"`
	Route   RouteKind `json:"route"`
	Problem string    `json:"problem"` // a sentence without any host
}

// Diagnostics describe the state of a client, for a user to copy into a bug report. They contain no
// secret and no host.
type Diagnostics struct {
	Route        *Route         `json:"route"`            // nil if none is in use
	Choosing     string         `json:"choosing"`         // why the client last selected a route, or will select one
	Local        bool           `json:"local_configured"` // the profile has a Local address
	Auth         AuthMode       `json:"auth"`
	SignedIn     bool           `json:"signed_in"` // there is a credential to send
	Platform     string         `json:"platform"`
	Version      string         `json:"version"`
	Model        string         `json:"model"`
	Capabilities []string       `json:"capabilities"` // advertised operations and features
	Failures     []RouteFailure `json:"failures"`     // at most 20, the newest last
}

// recordFailure stores a failure. The caller holds c.mu.
func (c *Client) recordFailure(kind RouteKind, err error) {
	if err == nil {
		return
	}
	c.failures = append(c.failures, RouteFailure{At: c.options.Clock(), Route: kind, Problem: plainText(err)})
	if extra := len(c.failures) - maxFailures; extra > 0 {
		c.failures = slices.Delete(c.failures, 0, extra)
	}
}

// Diagnostics returns the state of the client. It sends nothing.
func (c *Client) Diagnostics() Diagnostics {
	profile := c.Profile()
	d := Diagnostics{Local: c.local != nil, Auth: profile.Auth, SignedIn: c.account.canSignIn()}
	if id := profile.Identity; id != nil {
		d.Platform, d.Version, d.Model = id.Platform, id.Version, id.Model
	}
	c.mu.Lock()
	d.Choosing, d.Failures = c.reason, slices.Clone(c.failures)
	current := c.current
	c.mu.Unlock()
	if current != nil {
		route := current.route
		d.Route = &route
		d.Platform, d.Version, d.Model = current.caps.Platform, current.caps.Version, current.caps.Model
		d.Capabilities = append(current.caps.Endpoints(), current.caps.Features()...)
	}
	// The gateway's names for itself can contain anything.
	d.Platform, d.Version, d.Model = c.scrub(d.Platform), c.scrub(d.Version), c.scrub(d.Model)
	for i, name := range d.Capabilities {
		d.Capabilities[i] = c.scrub(name)
	}
	return d
}

// String returns the diagnostics as text, one line per fact.
func (d Diagnostics) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if d.Route != nil {
		line("route: %s since %s (%s), choice %d", d.Route.Kind, d.Route.Since.UTC().Format(time.RFC3339), d.Route.Reason, d.Route.Generation)
	} else {
		line("route: none")
	}
	line("chosen because: %s", d.Choosing)
	line("local address configured: %t", d.Local)
	line("sign-in: %s, credential kept: %t", d.Auth, d.SignedIn)
	line("gateway: %s %s, model %s", d.Platform, d.Version, d.Model)
	line("offers: %s", strings.Join(d.Capabilities, " "))
	for _, f := range d.Failures {
		line("%s %s: %s", f.At.UTC().Format(time.RFC3339), f.Route, f.Problem)
	}
	return b.String()
}

// JSON returns the diagnostics as indented JSON.
func (d Diagnostics) JSON() ([]byte, error) { return json.MarshalIndent(d, "", "  ") }
