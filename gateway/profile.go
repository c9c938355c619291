package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
)

// ProfileSchema is the version of the stored form of [Profile] that this package writes.
const ProfileSchema = 2

// AuthMode is how a profile signs in.
type AuthMode string

// The ways to sign in.
const (
	AuthNone     AuthMode = "none"     // sends no credential
	AuthBearer   AuthMode = "bearer"   // sends a key in the Authorization header: API_SERVER_KEY of a Hermes gateway (doc/hermes/api.md §0.1)
	AuthPassword AuthMode = "password" // signs in for session cookies, at a proxy or dashboard before the gateway (doc/hermes/api.md §10)
)

// ServerKind is the kind of server that a profile expects at its addresses.
type ServerKind string

// The kinds of servers.
const (
	Hermes ServerKind = ""       // a Hermes Agent gateway
	OpenAI ServerKind = "openai" // any other server with OpenAI's HTTP API: turns without sessions, at the Remote address only
)

// JobAccess says whether the owner allows the routes of scheduled jobs, which no measured version
// advertises.
type JobAccess string

// The values of [JobAccess].
const (
	JobsUnasked JobAccess = ""    // the owner was not asked; the client does not call the job routes
	JobsOn      JobAccess = "on"  // the client calls the job routes even if the gateway does not advertise them
	JobsOff     JobAccess = "off" // the client calls the job routes only if the gateway advertises them
)

// Profile describes one gateway: its addresses, how to sign in, and what the client learned about
// it. It holds no secret; those are [Credentials].
//
// A Profile is a value and is safe for concurrent use as long as no one changes it.
type Profile struct {
	Schema int        `json:"schema"` // of the stored form; 0 means the current one
	ID     string     `json:"id"`     // chosen by the host program
	Name   string     `json:"name"`
	Kind   ServerKind `json:"kind,omitempty"`
	Remote string     `json:"remote"`          // works from everywhere; required
	Local  string     `json:"local,omitempty"` // of the same gateway in the home network; tried first

	Auth     AuthMode `json:"auth"`
	Username string   `json:"username,omitempty"` // for AuthPassword
	Insecure bool     `json:"insecure,omitempty"` // allows plain HTTP in private networks; on this machine it is always allowed

	// Jobs allows scheduled jobs on gateways that have but do not advertise them.
	Jobs JobAccess `json:"jobs,omitempty"`

	// RemoteKey and LocalKey pin the public key of a certificate, in the form of [KeyPin]. The
	// client checks a pinned key instead of the certificate chain.
	RemoteKey string `json:"remote_key,omitempty"`
	LocalKey  string `json:"local_key,omitempty"`

	Identity    *Identity                  `json:"identity,omitempty"` // learned; set it to nil to accept a replaced gateway
	Session     string                     `json:"session,omitempty"`  // the session that the user selected
	Preferences map[string]json.RawMessage `json:"preferences,omitempty"`

	Migrated     bool `json:"migrated,omitempty"`      // was read from an older schema
	MigratedFrom int  `json:"migrated_from,omitempty"` // that schema
}

// ProfileError names an invalid field of a profile and the problem. It does not contain the value,
// which may be secret.
type ProfileError struct {
	Field   string // name in the stored form, such as remote
	Problem string
}

func (e *ProfileError) Error() string { return prefix + "profile: " + e.Field + " " + e.Problem }

// ParseProfile decodes a stored profile and validates it (see [Profile.Validate]). It migrates and
// marks a profile of an older schema, and drops fields that the older schema did not have.
//
// It refuses a newer schema and unknown fields: silently ignoring a misspelled remote_key would
// turn pinning off.
func ParseProfile(data []byte) (Profile, error) {
	raw, from, err := migrate(data)
	if err != nil {
		return Profile{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var p Profile
	if err := decoder.Decode((*stored)(&p)); err != nil {
		return Profile{}, malformed(err)
	}
	if from < ProfileSchema {
		p.Migrated, p.MigratedFrom = true, from
	}
	p.Schema = ProfileSchema
	return p, p.Validate()
}

// stored is Profile without its methods.
type stored Profile

// malformed names the malformed field without its value, which may be a secret in the wrong place.
func malformed(err error) error {
	var typeErr *json.UnmarshalTypeError
	if errors.As(err, &typeErr) && typeErr.Field != "" {
		return &ProfileError{Field: typeErr.Field, Problem: "has the wrong type"}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &ProfileError{Field: strings.Trim(name, `"`), Problem: "is not a field that this version knows"}
	}
	return &ProfileError{Field: "profile", Problem: "is not the JSON form of a profile"}
}

// Validate checks the profile. The error joins one [*ProfileError] for each problem.
func (p Profile) Validate() error {
	var problems []error
	bad := func(field, problem string) {
		problems = append(problems, &ProfileError{Field: field, Problem: problem})
	}
	if p.Schema > ProfileSchema || p.Schema < 0 {
		bad("schema", fmt.Sprintf("is %d, but this version supports at most %d", p.Schema, ProfileSchema))
	}
	if p.Kind != Hermes && p.Kind != OpenAI {
		bad("kind", "must be empty or openai")
	}
	if p.Jobs != JobsUnasked && p.Jobs != JobsOn && p.Jobs != JobsOff {
		bad("jobs", "must be on or off")
	}
	if p.Remote == "" {
		bad("remote", "is missing")
	}
	for field, address := range map[string]string{"remote": p.Remote, "local": p.Local} {
		if address == "" {
			continue
		}
		u, err := parseAddress(address, p.Kind)
		if err == nil {
			err = checkPlain(u, p.Insecure)
		}
		if err != nil {
			bad(field, err.Error())
		}
	}
	if p.Kind == OpenAI && p.Local != "" {
		bad("local", "is supported for Hermes gateways only: other servers cannot be identified")
	}
	switch p.Auth {
	case AuthNone, AuthBearer:
	case AuthPassword:
		if p.Username == "" {
			bad("username", "is missing")
		}
		if p.Kind == OpenAI {
			bad("auth", "with a password is supported for Hermes gateways only")
		}
	default:
		bad("auth", "must be none, bearer or password")
	}
	for _, pin := range []struct{ field, key, address string }{{"remote_key", p.RemoteKey, p.Remote}, {"local_key", p.LocalKey, p.Local}} {
		switch {
		case pin.key == "":
		case normalPin(pin.key) == "":
			bad(pin.field, "must be the SHA-256 of a public key: 64 hexadecimal digits or base64")
		case strings.HasPrefix(strings.ToLower(pin.address), "http:"):
			bad(pin.field, "needs an address that begins with https://")
		}
	}
	for name, value := range p.Preferences {
		if !json.Valid(value) {
			bad("preferences."+name, "is not valid JSON")
		}
	}
	return errors.Join(problems...)
}

// MarshalJSON encodes the stored form. It refuses a profile with an invalid address, which may
// contain a password, with a [*ProfileError].
func (p Profile) MarshalJSON() ([]byte, error) {
	for field, address := range map[string]string{"remote": p.Remote, "local": p.Local} {
		if address == "" {
			continue
		}
		if _, err := parseAddress(address, p.Kind); err != nil {
			return nil, &ProfileError{Field: field, Problem: err.Error()}
		}
	}
	p.Schema = ProfileSchema
	return json.Marshal(stored(p))
}

// String returns the profile's name and no address.
func (p Profile) String() string { return fmt.Sprintf("profile %q", p.Name) }

// Format writes [Profile.String] for every verb, so that no verb prints an address.
func (p Profile) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// LogValue returns [Profile.String] for log/slog.
func (p Profile) LogValue() slog.Value { return slog.StringValue(p.String()) }

// clone returns a copy that shares nothing with p.
func (p Profile) clone() Profile {
	p.Preferences = maps.Clone(p.Preferences)
	if p.Identity != nil {
		identity := *p.Identity
		p.Identity = &identity
	}
	return p
}
