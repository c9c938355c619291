package gateway

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cookieNames are the only cookies that the client stores and sends: those of a Hermes login, bare
// or with the prefixes of RFC 6265bis §4.1.3, which a gateway uses behind TLS (doc/hermes/api.md
// §10).
var cookieNames = func() map[string]bool {
	names := map[string]bool{}
	for _, name := range []string{"hermes_session_at", "hermes_session_rt", "hermes_session_provider"} {
		names[name], names["__Host-"+name], names["__Secure-"+name] = true, true, true
	}
	return names
}()

// maxCookie is the largest cookie value, in bytes. Browsers allow 4096 for name and value.
const maxCookie = 4096

// validCookieValue reports whether a value consists of cookie-octets, optionally in quotes (RFC
// 6265 §4.1.1). Nothing else may go into a header: a line break or a semicolon would inject headers
// or cookies.
func validCookieValue(value string) bool {
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	for i := range len(value) {
		switch b := value[i]; {
		case b <= ' ', b >= 0x7f, b == '"', b == ',', b == ';', b == '\\':
			return false
		}
	}
	return value != "" && len(value) <= maxCookie
}

// setCookie is one acceptable Set-Cookie header. With gone it deletes the cookie.
type setCookie struct {
	cookie loginCookie
	gone   bool
}

// readSetCookie parses a Set-Cookie header as RFC 6265 §5.2 does. The parser of net/http removes
// the quotes of a value, which must be sent back unchanged. A header that breaks a rule is ignored
// as a whole.
func readSetCookie(header string, secure bool, now time.Time) (setCookie, bool) {
	pair, rest, _ := strings.Cut(header, ";")
	name, value, ok := strings.Cut(pair, "=")
	name, value = strings.Trim(name, " \t"), strings.Trim(value, " \t")
	if !ok || !cookieNames[name] {
		return setCookie{}, false
	}
	c := setCookie{cookie: loginCookie{name: name, value: NewSecret(value)}}
	var path, domain string
	var aged bool
	for attribute := range strings.SplitSeq(rest, ";") {
		key, v, _ := strings.Cut(attribute, "=")
		v = strings.Trim(v, " \t")
		switch strings.ToLower(strings.Trim(key, " \t")) {
		case "secure":
			c.cookie.secure = true
		case "path":
			path = v
		case "domain":
			domain = v
		case "max-age":
			if seconds, err := strconv.ParseInt(v, 10, 64); err == nil {
				aged, c.gone = true, seconds <= 0
				c.cookie.expires = now.Add(time.Duration(min(seconds, 1<<31)) * time.Second)
			}
		case "expires":
			if at, err := http.ParseTime(v); err == nil && !aged {
				c.gone, c.cookie.expires = !at.After(now), at
			}
		}
	}
	host, prefixed := strings.HasPrefix(name, "__Host-"), strings.HasPrefix(name, "__")
	switch {
	case c.cookie.secure && !secure, prefixed && !c.cookie.secure, host && (path != "/" || domain != ""):
		return setCookie{}, false
	case !c.gone && !validCookieValue(value):
		return setCookie{}, false
	}
	return c, true
}

// readSetCookies parses all acceptable Set-Cookie headers of a response.
func readSetCookies(resp *http.Response, secure bool, now time.Time) []setCookie {
	var all []setCookie
	for _, header := range resp.Header.Values("Set-Cookie") {
		if c, ok := readSetCookie(header, secure, now); ok {
			all = append(all, c)
		}
	}
	return all
}

// merge applies set to cookies, and reports whether that changed anything.
func merge(cookies []loginCookie, set []setCookie) ([]loginCookie, bool) {
	next, changed := slices.Clone(cookies), false
	for _, s := range set {
		i := slices.IndexFunc(next, func(c loginCookie) bool { return c.name == s.cookie.name })
		switch {
		case i >= 0 && s.gone:
			next, changed = slices.Delete(next, i, i+1), true
		case i >= 0 && next[i] != s.cookie:
			next[i], changed = s.cookie, true
		case i < 0 && !s.gone:
			next, changed = append(next, s.cookie), true
		}
	}
	return next, changed
}

// cookieHeader returns the Cookie header for a route, empty if no cookie may be sent there.
func cookieHeader(cookies []loginCookie, secure bool, now time.Time) string {
	var pairs []string
	for _, c := range cookies {
		if (c.secure && !secure) || (!c.expires.IsZero() && !c.expires.After(now)) || !cookieNames[c.name] || !validCookieValue(c.value.Reveal()) {
			continue
		}
		pairs = append(pairs, c.name+"="+c.value.Reveal())
	}
	return strings.Join(pairs, "; ")
}

// carriesSession reports whether a Cookie header can open a session. The cookie that names the
// provider alone cannot.
func carriesSession(header string) bool {
	return strings.Contains(header, "hermes_session_at=") || strings.Contains(header, "hermes_session_rt=")
}
