package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
)

// Kind is what the holder of a token may do.
type Kind uint8

const (
	// App is the token of an app, which chats (doc/protocol.md §2).
	App Kind = iota
	// Deliver is the token of a sender, which only delivers (doc/protocol.md §2).
	Deliver
)

// String returns the kind for log lines and listings.
func (k Kind) String() string {
	if k == Deliver {
		return "deliver"
	}
	return "app"
}

// MainLabel is the label of MOBILE_TOKEN. Pass it to ParseTokens as the
// default label of that list.
const MainLabel = "main"

const (
	maxSecret = 512 // longer texts aren't tokens, and would only cost time to hash
	maxLabel  = 64
)

// ErrDuplicate reports that two tokens have the same label or secret.
var ErrDuplicate = errors.New("duplicate label or token")

// Token is an accepted token. Devices are bound to its label, and only the label is shown, never
// the secret.
type Token struct {
	// Label is 1 to 64 characters of A-Z a-z 0-9 . _ -
	Label string
	// Secret is the token itself.
	Secret string `json:"-"`
	// Kind is what the token allows.
	Kind Kind
	// Device is the id of the only device that may use it; empty: any.
	Device string
	// Expires is when it expires; zero: never.
	Expires time.Time
}

// For reports whether a device may use the token.
func (t Token) For(device string) bool { return t.Device == "" || t.Device == device }

// Names is the meaning of the names before the tokens of a list.
type Names uint8

const (
	// Labels means that `name=token` gives a token a label, and `device:id=token` binds one to a
	// device.
	Labels Names = iota
	// Devices means that `name=token` binds a token to the device of that id, as in lists of the
	// Hermes plugin hermes-mobile.
	Devices
)

// devicePrefix starts an item that binds a token to a device, in a list of Labels. A label has no
// colon.
const devicePrefix = "device:"

// String returns the label only, so a token in a log line by mistake keeps its secret.
func (t Token) String() string { return t.Kind.String() + " token " + t.Label }

// Expired reports whether the token has expired at a time.
func (t Token) Expired(now time.Time) bool { return !t.Expires.IsZero() && !now.Before(t.Expires) }

// GoString is like String, for %#v.
func (t Token) GoString() string { return t.String() }

// ParseTokens parses a comma-separated list whose items are `token`, `label=token` or
// `device:id=token` (doc/protocol.md §2). names may give the names another meaning. It ignores
// spaces around items and empty items. A token that is bound to a device has the device's id as its
// label, if that is a valid one.
//
// The first item without a label gets defaultLabel if that isn't empty. Every other one gets a
// label from a hash of the token, so the same token has the same label after a restart, wherever it
// is in the list. That hash is short and only for labels, so it doesn't help to guess.
//
// An item that ends in "=", as Base64 does, is a token. A duplicate label or token is ErrDuplicate.
// Errors give the position of an item, because any part of a mistyped item may belong to a secret.
func ParseTokens(list string, kind Kind, defaultLabel string, names Names) ([]Token, error) {
	var tokens []Token
	for i, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		label, secret := splitItem(item)
		device := ""
		if id, rest, bound := splitDevice(item, names); bound {
			if !frame.ValidID(id) {
				return nil, fmt.Errorf("item %d: the text before the = is not a device id", i+1)
			}
			device, label, secret = id, "", rest
			if ValidLabel(id) {
				label = id
			}
			if kind != App {
				return nil, fmt.Errorf("item %d: only an app token can be bound to a device", i+1)
			}
		}
		if !validSecret(secret) {
			return nil, fmt.Errorf("item %d: a token is 1 to %d printable ASCII characters without spaces", i+1, maxSecret)
		}
		switch {
		case label != "":
		case device != "":
			label = hashLabel(secret)
		case defaultLabel != "":
			label, defaultLabel = defaultLabel, ""
		default:
			label = hashLabel(secret)
		}
		tokens = append(tokens, Token{Label: label, Secret: secret, Kind: kind, Device: device})
		if err := CheckTokens(tokens); err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
	}
	return tokens, nil
}

// CheckTokens returns ErrDuplicate if two tokens have the same label or secret. Call it with all
// tokens together before Tokens.Replace: with two labels for one secret, the binding of a device
// would depend on the order of the lists.
func CheckTokens(tokens []Token) error {
	labels, secrets := map[string]bool{}, map[string]bool{}
	for _, t := range tokens {
		if labels[t.Label] || secrets[t.Secret] {
			return ErrDuplicate
		}
		labels[t.Label], secrets[t.Secret] = true, true
	}
	return nil
}

// splitItem splits `label=token`. Only a valid label counts as one, and padding isn't a token.
func splitItem(item string) (label, secret string) {
	label, secret, found := strings.Cut(item, "=")
	if !found || !ValidLabel(label) || strings.Trim(secret, "=") == "" {
		return "", item
	}
	return label, secret
}

// splitDevice splits an item that binds a token to a device.
func splitDevice(item string, names Names) (id, secret string, bound bool) {
	id, secret, found := strings.Cut(item, "=")
	prefixed := strings.HasPrefix(id, devicePrefix)
	if !found || strings.Trim(secret, "=") == "" || !prefixed && names != Devices {
		return "", "", false
	}
	if prefixed {
		id = id[len(devicePrefix):]
	}
	return id, secret, true
}

// ValidLabel reports whether s may be the label of a token: 1 to 64 characters of A-Z a-z 0-9 . _ -
func ValidLabel(s string) bool {
	if s == "" || len(s) > maxLabel {
		return false
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func validSecret(s string) bool {
	if s == "" || len(s) > maxSecret {
		return false
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == ',' {
			return false
		}
	}
	return true
}

// hashLabel returns the label of a token that has none. The prefix separates it from HashSecret, so
// a label is no part of a stored hash.
func hashLabel(secret string) string {
	sum := sha256.Sum256([]byte("hermes-mobile token label\x00" + secret))
	return "token-" + hex.EncodeToString(sum[:4])
}

// NewSecret returns a token: 64 hex digits, 256 bits of crypto/rand.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never returns an error
	return hex.EncodeToString(b[:])
}

// HashSecret returns the hash under which a device's own token is stored: SHA-256 in hex. That is
// enough for the 256 random bits of NewSecret, and not for a secret that a person chose.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Tokens is the set of accepted tokens. The zero value accepts none. Replace may run during
// matches.
type Tokens struct {
	set atomic.Pointer[[]hashedToken]
}

type hashedToken struct {
	label, device string
	kind          Kind
	hash          [sha256.Size]byte
	expires       time.Time
}

// Replace replaces all tokens at once. It stores hashes of the secrets, not the secrets. It ignores
// tokens without a secret.
func (t *Tokens) Replace(tokens []Token) {
	set := make([]hashedToken, 0, len(tokens))
	for _, token := range tokens {
		if token.Secret != "" {
			set = append(set, hashedToken{token.Label, token.Device, token.Kind, sha256.Sum256([]byte(token.Secret)), token.Expires})
		}
	}
	t.set.Store(&set)
}

// Match returns the token with a secret, without the secret. Its time reveals nothing about the
// tokens: it compares hashes in constant time, and always all of them. The first of duplicate
// secrets counts. The caller must check whether the token has expired.
func (t *Tokens) Match(secret string) (token Token, ok bool) {
	set := t.set.Load()
	if set == nil || secret == "" || len(secret) > maxSecret {
		return Token{}, false
	}
	hash, found := sha256.Sum256([]byte(secret)), -1
	for i := len(*set) - 1; i >= 0; i-- {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(hash[:], (*set)[i].hash[:]), i, found)
	}
	if found < 0 {
		return Token{}, false
	}
	return (*set)[found].token(), true
}

func (h *hashedToken) token() Token {
	return Token{Label: h.label, Kind: h.kind, Device: h.device, Expires: h.expires}
}

// MatchHash is Match for a token whose SHA-256 is accepts.
func (t *Tokens) MatchHash(is func(hash [sha256.Size]byte) bool) (token Token, ok bool) {
	if set := t.set.Load(); set != nil {
		for _, h := range *set {
			if is(h.hash) {
				return h.token(), true
			}
		}
	}
	return Token{}, false
}

// Len returns the number of tokens.
func (t *Tokens) Len() int {
	if set := t.set.Load(); set != nil {
		return len(*set)
	}
	return 0
}
