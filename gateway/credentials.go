package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Credentials are the secrets of one account at one gateway. They print and marshal as "[redacted]"; a host program keeps
// what [Credentials.Export] gives, encrypted. A Credentials is a value; do not change one that others use.
type Credentials struct {
	Token    Secret        // with AuthBearer
	Password Secret        // with AuthPassword, where it may be kept: an expired login is then repeated without asking
	cookies  []loginCookie // of the login

	// Binding is the account these belong to: a hash of the Remote address and the user name. Empty is not bound yet.
	Account string
}

// Cookie is one session cookie of a login (api-facts §10).
type loginCookie struct {
	name    string
	value   Secret    // as it goes into the Cookie header, quotes included
	expires time.Time // zero: not said
	secure  bool      // sent over TLS only
}

// binding is the account of a profile.
func binding(p Profile) string {
	address := p.Remote
	if u, err := parseAddress(p.Remote, p.Kind); err == nil {
		address = u.String()
	}
	sum := sha256.Sum256([]byte(address + "\n" + p.Username))
	return hex.EncodeToString(sum[:])
}

// For returns the credentials as they are good for a profile. Those of another gateway (Remote address) or user name are
// dropped, so a changed profile never sends them on; those not bound yet are bound.
func (c Credentials) For(p Profile) Credentials {
	account := binding(p)
	if c.Account != "" && c.Account != account {
		return Credentials{Account: account}
	}
	c.Account, c.cookies = account, slices.Clone(c.cookies)
	return c
}

// HasSession reports whether the credentials hold the cookies of a login.
func (c Credentials) HasSession() bool { return len(c.cookies) > 0 }

type exportedCookie struct {
	Name    string    `json:"name"`
	Value   string    `json:"value"`
	Expires time.Time `json:"expires,omitzero"`
	Secure  bool      `json:"secure,omitempty"`
}

type exported struct {
	Token    string           `json:"token,omitempty"`
	Password string           `json:"password,omitempty"`
	Cookies  []exportedCookie `json:"cookies,omitempty"`
	Binding  string           `json:"binding"`
}

// Export returns everything in one secret, for a host program to encrypt and keep. [ParseCredentials] reads it.
func (c Credentials) Export() (Secret, error) {
	out := exported{Token: c.Token.Reveal(), Password: c.Password.Reveal(), Binding: c.Account}
	for _, cookie := range c.cookies {
		out.Cookies = append(out.Cookies, exportedCookie{Name: cookie.name, Value: cookie.value.Reveal(), Expires: cookie.expires, Secure: cookie.secure})
	}
	data, err := json.Marshal(out)
	return NewSecret(string(data)), err
}

// ParseCredentials reads what [Credentials.Export] wrote. Cookies that a login could not have set are left out.
func ParseCredentials(data Secret) (Credentials, error) {
	var in exported
	if err := json.Unmarshal([]byte(data.Reveal()), &in); err != nil {
		return Credentials{}, errors.New("gateway: stored credentials are malformed; sign in again") // err would quote a byte of them
	}
	c := Credentials{Token: NewSecret(in.Token), Password: NewSecret(in.Password), Account: in.Binding}
	for _, cookie := range in.Cookies {
		if cookieNames[cookie.Name] && validCookieValue(cookie.Value) {
			c.cookies = append(c.cookies, loginCookie{name: cookie.Name, value: NewSecret(cookie.Value), expires: cookie.Expires, secure: cookie.Secure})
		}
	}
	return c, nil
}
