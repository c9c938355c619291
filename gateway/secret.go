package gateway

import (
	"encoding/json"
	"log/slog"
	"unique"
)

// redacted replaces secrets wherever they would be printed.
const redacted = "[redacted]"

// Secret is a token, password or cookie. It prints, formats, logs and marshals as "[redacted]";
// only [Secret.Reveal] returns the value. The zero value is empty. Secrets can be copied, compared
// with == and used concurrently.
//
// The value is behind a handle, because fmt cannot call methods on unexported fields: it would
// print the value of a Secret in one.
type Secret struct{ value unique.Handle[string] }

// NewSecret returns a secret with the given value.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{unique.Make(value)}
}

// Reveal returns the value. Call it only where the value is sent or encrypted.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.value.Value()
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns "[redacted]", or "" for an empty secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString returns a redacted form for %#v.
func (s Secret) GoString() string { return `gateway.Secret{` + s.String() + `}` }

// MarshalJSON encodes the result of [Secret.String].
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue returns the result of [Secret.String] for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
