package config

import (
	"fmt"
	"log/slog"
)

// Secret is a string that hides its value when it is printed, logged, or marshaled. [Secret.Reveal]
// returns the value. Do not use a Secret as a map key: encoding/json writes such a key unchanged.
type Secret string

const hidden = "[secret]"

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// String returns "[secret]", or "" for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("config.Secret(%q)", s.String()) }

// Format hides the value from every verb. Without it, fmt prints the value in its complaint about a
// wrong verb such as %d.
func (s Secret) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('#'):
		fmt.Fprint(f, s.GoString())
	case verb == 'q':
		fmt.Fprintf(f, "%q", s.String())
	default:
		fmt.Fprint(f, s.String())
	}
}

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders that use encoding.TextMarshaler, such as YAML.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }
