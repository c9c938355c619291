package config

import (
	"strings"

	"hermes-mobile/internal/passhash"
)

// setAdminToken sets the admin token, in clear or as a hash.
func setAdminToken(to *Secret, v string) error {
	if !strings.HasPrefix(v, "$argon2") {
		return setToken(to, v)
	}
	if _, err := passhash.Parse(v); err != nil {
		return problemf("is not a hash that this server can check: create it with hermes-mobile admin hash, and use single quotes, because a shell expands $")
	}
	*to = Secret(v)
	return nil
}

// CheckAdminToken returns an error if token is too short or malformed for an admin token.
func CheckAdminToken(token string) error { return badToken(token) }

// checkAdmin decides who can open the admin UI. An admin token without MOBILE_ADMIN means "on", as it did
// before that setting existed.
func (l *loader) checkAdmin(c *Config) {
	token, hasToken := l.get(adminTokenName)
	mode, chosen := l.get(adminName)
	switch {
	case !chosen && hasToken:
		c.Admin = "on"
	case c.Admin == "on" && !hasToken:
		l.bad(mode, problemf("needs an admin token: set MOBILE_ADMIN_TOKEN to the output of hermes-mobile admin hash, or use local"))
	case hasToken && (c.Admin == "local" || c.Admin == "off"):
		l.warn(token.key, token.where, "%s (%s) has no effect, because MOBILE_ADMIN is %s, not on", token.key, token.where, c.Admin)
	}
	if hasToken && (token.place == inYAML || token.place == inDotenv) && !strings.HasPrefix(token.text, passhash.Prefix) {
		c.AdminClear = token.where
	}
}
