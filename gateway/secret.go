package gateway

import (
	"encoding/json"
	"log/slog"
)

// redacted stands wherever a secret would be printed.
const redacted = "[redacted]"

// Secret is a token, password or cookie. It prints, formats, logs and marshals as "[redacted]": the value leaves it by
// [Secret.Reveal] only. The zero value is no secret. A Secret may be copied and used concurrently.
type Secret struct{ value string }

// NewSecret keeps value as a secret.
func NewSecret(value string) Secret { return Secret{value} }

// Reveal returns the value, for the one place that sends or encrypts it.
func (s Secret) Reveal() string { return s.value }

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.value == "" }

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
