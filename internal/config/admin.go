package config

import (
	"strings"

	"hermes-mobile/internal/passhash"
)

// setAdminToken takes the admin token in clear, or the hash of one.
func setAdminToken(to *Secret, v string) error {
	if !strings.HasPrefix(v, "$argon2") {
		return setToken(to, v)
	}
	if _, err := passhash.Parse(v); err != nil {
		return problemf("is not a hash that this server can check: make it with hermes-mobile admin hash, and quote it whole, since a shell replaces $ in it")
	}
	*to = Secret(v)
	return nil
}

// CheckAdminToken returns why a text cannot be an admin token.
func CheckAdminToken(token string) error { return badToken(token) }

// checkAdmin settles who can open the admin UI. A server that had an admin token before there was a choice stays as it was.
func (l *loader) checkAdmin(c *Config) {
	token, hasToken := l.get(adminTokenName)
	mode, chosen := l.get(adminName)
	switch {
	case !chosen && hasToken:
		c.Admin = "on"
	case c.Admin == "on" && !hasToken:
		l.bad(mode, problemf("needs an admin token: set MOBILE_ADMIN_TOKEN to what hermes-mobile admin hash prints, or use local"))
	case hasToken && (c.Admin == "local" || c.Admin == "off"):
		l.warn(token.key, token.where, "%s (%s) has no effect, because MOBILE_ADMIN is %s and not on", token.key, token.where, c.Admin)
	}
	if hasToken && (token.place == inYAML || token.place == inDotenv) && !strings.HasPrefix(token.text, passhash.Prefix) {
		c.AdminClear = token.where
	}
}
