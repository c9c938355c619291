package config

import (
	"fmt"
	"io"
	"log/slog"
)

// A Secret is a string that does not show itself when it is printed, logged or
// marshalled. Use [Secret.Reveal] where the value itself is needed. As the key of
// a map it is not safe: encoding/json writes such a key as it is.
type Secret string

const hidden = "[secret]"

// Reveal returns the value.
func (s Secret) Reveal() string { return string(s) }

// String returns "[secret]", or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return fmt.Sprintf("config.Secret(%q)", s.String()) }

// Format hides the value from every verb: without it a wrong one, such as %d,
// makes fmt print the value in its complaint.
func (s Secret) Format(f fmt.State, verb rune) {
	switch {
	case verb == 'v' && f.Flag('#'):
		io.WriteString(f, s.GoString())
	case verb == 'q':
		fmt.Fprintf(f, "%q", s.String())
	default:
		io.WriteString(f, s.String())
	}
}

// LogValue hides the value from log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from every encoder that knows text, YAML included.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", s.String()), nil }
