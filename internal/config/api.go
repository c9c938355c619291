package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"unicode"

	"hermes-mobile/internal/plaintext"
)

// setAPIURL sets the address of Hermes' API server, which may have a path.
func setAPIURL(to *string, v string) error {
	const example = "http://127.0.0.1:8642"
	u, err := webURL(v, example)
	if err != nil {
		return err
	}
	if u.RawQuery != "" || u.ForceQuery || strings.Contains(v, "#") || u.User != nil {
		return problemf("contains a user, %q, or %q: use the form %s", "?", "#", example)
	}
	*to = strings.TrimRight(u.String(), "/")
	return nil
}

// setModel sets the name of a model.
func setModel(to *string, v string) error {
	if len(v) > 256 || strings.ContainsFunc(v, unicode.IsControl) {
		return problemf("is longer than 256 bytes or contains a control character: use a model id as the API lists it")
	}
	*to = v
	return nil
}

// minAPIKey is the shortest key with which Hermes starts its API server.
const minAPIKey = 16

func setAPIKey(to *Secret, v string) error {
	if !visible(v) {
		return problemf("contains a space or a character that is not ASCII: use exactly the key of the API")
	}
	*to = Secret(v)
	return nil
}

// checkAPIKey rejects a key that is too short for Hermes. Other servers have keys of any length.
func (l *loader) checkAPIKey(c *Config, v value) {
	if c.APIKind != "openai" && len(c.APIKey) < minAPIKey {
		l.bad(v, problemf("is shorter than the %d characters that Hermes requires: use the API_SERVER_KEY of Hermes", minAPIKey))
	}
}

// visible reports whether a text has only printable ASCII characters, so that it fits into a header.
func visible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Variables in Hermes' own .env with the address of its API server.
const (
	hermesAPIHost = "API_SERVER_HOST"
	hermesAPIPort = "API_SERVER_PORT"
)

// findAPI reads the address of Hermes' API server from Hermes' own .env if MOBILE_API_URL is not set.
func (l *loader) findAPI(c *Config) {
	host, port := strings.TrimSpace(l.hermesAPI[hermesAPIHost]), strings.TrimSpace(l.hermesAPI[hermesAPIPort])
	if _, set := l.get(apiURLName); set || host == "" && port == "" || c.APIKind == "openai" {
		return
	}
	u, err := url.Parse(c.APIURL)
	if err != nil {
		return
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = u.Hostname()
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		port = u.Port()
	}
	c.APIURL = "http://" + net.JoinHostPort(host, port)
}

// findAPIKey looks for the key of Hermes' API server if MOBILE_API_KEY is not set. Hermes' own key is only
// for this machine: it must not go to another machine, nor to another server on this one.
func (l *loader) findAPIKey(c *Config) {
	u, err := url.Parse(c.APIURL)
	if err != nil || c.APIURL == "" {
		return
	}
	here := loopback(u.Hostname())
	if v, set := l.get(apiURLName); set && u.Scheme == "http" && !here {
		l.warnPlain(v.key, v.where, "%s (%s) is plain http on another machine, so the API key and all messages cross the network unencrypted: use https, or a tunnel to this machine",
			v.key, v.where)
	}
	if c.APIKey != "" {
		v, _ := l.get(apiKeyName)
		l.checkAPIKey(c, v)
		return
	}
	if v, set := l.get(apiKeyFile); set {
		file := l.path(v.text)
		text, err := os.ReadFile(file)
		if pe := (*os.PathError)(nil); errors.As(err, &pe) {
			err = pe.Err
		}
		if err != nil {
			l.bad(v, problemf("cannot be read: %s", err))
			return
		}
		l.checkMode(file)
		if text, err = plaintext.Trim(text); err != nil {
			l.bad(v, problemf("%s", err))
			return
		}
		if err := setAPIKey(&c.APIKey, strings.TrimSpace(string(text))); err != nil {
			l.bad(v, err)
		} else {
			l.checkAPIKey(c, v)
		}
		return
	}
	if v, set := l.get(hermesAPIKey); set && here && c.APIKind != "openai" && len(v.text) >= minAPIKey && visible(v.text) {
		c.APIKey = Secret(v.text)
	}
}
