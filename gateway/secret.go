package gateway

import (
	"encoding/json"
	"log/slog"
	"unique"
)

// redacted stands wherever a secret would be printed.
const redacted = "[redacted]"

// Secret is a token, password or cookie. It prints, formats, logs and marshals as "[redacted]": the value leaves it by
// [Secret.Reveal] only. The zero value is no secret. A Secret may be copied, compared with == and used concurrently.
//
// The value is behind a handle: fmt cannot call methods on unexported fields, so a struct that holds a Secret in one would
// otherwise print it.
type Secret struct{ value unique.Handle[string] }

// NewSecret keeps value as a secret. An empty value is no secret.
func NewSecret(value string) Secret {
	if value == "" {
		return Secret{}
	}
	return Secret{unique.Make(value)}
}

// Reveal returns the value, for the one place that sends or encrypts it.
func (s Secret) Reveal() string {
	if s.IsZero() {
		return ""
	}
	return s.value.Value()
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s == Secret{} }

// String returns "[redacted]", or nothing where there is no secret.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return redacted
}

// GoString is String, for %#v.
func (s Secret) GoString() string { return `gateway.Secret{` + s.String() + `}` }

// MarshalJSON writes what String says.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue is what log/slog writes.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
