package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strings"
)

// Schema is the version of the stored form of [Profile] that this package writes.
const ProfileSchema = 2

// AuthMode is how a profile signs in.
type AuthMode string

// The ways to sign in.
const (
	AuthNone     AuthMode = "none"     // no credential is sent
	AuthBearer   AuthMode = "bearer"   // a key in the Authorization header: API_SERVER_KEY of a Hermes gateway (api-facts §0.1)
	AuthPassword AuthMode = "password" // a login for session cookies, where something before the gateway takes them (api-facts §10)
)

// Kind is what a profile expects at its addresses.
type ServerKind string

// The kinds of servers.
const (
	Hermes ServerKind = ""       // a Hermes Agent gateway
	OpenAI ServerKind = "openai" // any other server with OpenAI's HTTP API: turns without sessions, on the Remote address only
)

// Jobs says whether the owner allows the routes of scheduled jobs, which no measured version advertises.
type JobAccess string

// The answers.
const (
	JobsUnasked JobAccess = ""    // the owner has not been asked; the job routes are not called
	JobsOn      JobAccess = "on"  // the job routes are called even if the gateway does not advertise them
	JobsOff     JobAccess = "off" // the job routes are called only if the gateway advertises them
)

// Profile is one logical gateway: up to two addresses of it, how to sign in, and what was learnt of it. It holds no secret;
// those are [Credentials]. A Profile is a value; do not change one that others use.
type Profile struct {
	Schema int        `json:"schema"` // of the stored form; 0 is taken for the current one
	ID     string     `json:"id"`     // of the host program
	Name   string     `json:"name"`
	Kind   ServerKind `json:"kind,omitempty"`
	Remote string     `json:"remote"`          // address that works from everywhere; required
	Local  string     `json:"local,omitempty"` // address of the same gateway at home, tried first

	Auth     AuthMode `json:"auth"`
	Username string   `json:"username,omitempty"` // with AuthPassword
	Insecure bool     `json:"insecure,omitempty"` // allows plain http to private networks; this machine is always allowed

	// Jobs allows scheduled jobs where the gateway has them and does not advertise them.
	Jobs JobAccess `json:"jobs,omitempty"`

	// Pinned keys: SHA-256 of a certificate's public key, as [KeyPin] writes it. A pinned key is asked for instead of a
	// certificate chain.
	RemoteKey string `json:"remote_key,omitempty"`
	LocalKey  string `json:"local_key,omitempty"`

	Identity    *Identity                  `json:"identity,omitempty"` // learnt; nil learns anew, to accept a gateway that was exchanged
	Session     string                     `json:"session,omitempty"`  // selected by the person
	Preferences map[string]json.RawMessage `json:"preferences,omitempty"`

	Migrated     bool `json:"migrated,omitempty"`      // was of an older schema once
	MigratedFrom int  `json:"migrated_from,omitempty"` // of which
}

// ProfileError names a field of a profile and what is wrong with it. It does not quote the value.
type ProfileError struct {
	Field   string // as in the stored form, such as remote
	Problem string
}

func (e *ProfileError) Error() string { return prefix + "profile: " + e.Field + " " + e.Problem }

// ParseProfile reads a stored profile. One of an older schema is migrated and marked; one of a newer schema is refused, and
// so is a member that this schema does not have: a misspelt pin that is left out silently would be no pin. Members that an
// older schema did not have are left out. The profile is valid ([Profile.Validate]) where err is nil.
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

// malformed says which member is malformed without its value, which may have been put into the wrong place.
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

// Validate names every problem, each as a [*ProfileError].
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

// MarshalJSON writes the stored form. A profile whose address holds a password is refused with a [*ProfileError].
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

// String tells the profile's name and nothing of its addresses.
func (p Profile) String() string { return fmt.Sprintf("profile %q", p.Name) }

// Format writes String, whatever the verb.
func (p Profile) Format(f fmt.State, _ rune) { io.WriteString(f, p.String()) }

// LogValue is what log/slog writes.
func (p Profile) LogValue() slog.Value { return slog.StringValue(p.String()) }

// clone keeps what the client learns out of the caller's copy.
func (p Profile) clone() Profile {
	p.Preferences = maps.Clone(p.Preferences)
	if p.Identity != nil {
		identity := *p.Identity
		p.Identity = &identity
	}
	return p
}
