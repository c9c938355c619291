package access

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// ParseOrigins parses the comma-separated list of MOBILE_ALLOWED_ORIGINS. Each item is a scheme, a
// host and an optional port, as browsers send them (https://app.example:8443,
// capacitor://localhost). "null" isn't allowed, because any page can have that origin.
func ParseOrigins(list string) ([]string, error) {
	var origins []string
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		origin, ok := canonicalOrigin(strings.TrimSuffix(item, "/"), false)
		if !ok {
			return nil, fmt.Errorf("%q is not an origin: give one such as https://app.example", item)
		}
		origins = append(origins, origin)
	}
	return origins, nil
}

// OriginAllowed reports whether the page that makes a request may connect (doc/protocol.md §1): its
// origin has the host and port of the request, or is on the list with scheme, host and port.
// Requests without an Origin come from native apps and are allowed. "null" and invalid origins are
// rejected.
//
// The Host of the request counts, also behind a proxy. X-Forwarded-Host doesn't. If a proxy
// rewrites the Host, list its origin.
func OriginAllowed(r *http.Request, allowed []string) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return true
	}
	if len(values) > 1 {
		return false
	}
	origin, ok := canonicalOrigin(values[0], false)
	if !ok {
		return false
	}
	for _, a := range allowed {
		if a, ok := canonicalOrigin(strings.TrimSuffix(a, "/"), false); ok && a == origin {
			return true
		}
	}
	scheme, _, _ := strings.Cut(origin, "://")
	if scheme != "http" && scheme != "https" {
		return false // an app's own scheme has no host of ours
	}
	// Which scheme the browser used is known only without a proxy. Behind one
	// it is taken to be the page's, which matters only for the default port.
	if r.TLS != nil {
		scheme = "https"
	}
	page, _ := canonicalOrigin(origin, true)
	here, ok := canonicalOrigin(scheme+"://"+r.Host, true)
	return ok && hostPort(page) == hostPort(here)
}

// SameOrigin says whether a request comes from a page of this address: it has one Origin, and that
// is equal in scheme, host and port. It is for what a page changes, so a request without an Origin
// is refused.
func SameOrigin(r *http.Request, address string) bool {
	values := r.Header.Values("Origin")
	u, err := url.Parse(address)
	if len(values) != 1 || err != nil {
		return false
	}
	page, isOrigin := canonicalOrigin(values[0], false)
	own, ok := canonicalOrigin(u.Scheme+"://"+u.Host, false)
	return isOrigin && ok && page == own
}

// canonicalOrigin writes an origin in the one way that can be compared: lower
// case, and without the default port, or always with it.
func canonicalOrigin(s string, withPort bool) (string, bool) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" ||
		u.ForceQuery || u.Fragment != "" || strings.ContainsAny(s, "#*\\ ") || strings.HasSuffix(u.Host, ":") {
		return "", false
	}
	scheme, host, port := strings.ToLower(u.Scheme), strings.ToLower(u.Hostname()), u.Port()
	standard := map[string]string{"http": "80", "https": "443"}[scheme]
	switch {
	case withPort && port == "":
		port = standard
	case !withPort && port == standard:
		port = ""
	}
	if port != "" || withPort {
		return scheme + "://" + net.JoinHostPort(host, port), true
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host, true
}

func hostPort(origin string) string {
	_, rest, _ := strings.Cut(origin, "://")
	return rest
}
