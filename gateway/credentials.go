package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Credentials are the secrets of one account at one gateway. They print, log and marshal as
// "[redacted]". To store them, encrypt the result of [Credentials.Export].
//
// A Credentials is a value and is safe for concurrent use as long as no one changes it.
type Credentials struct {
	Token    Secret        // for AuthBearer
	Password Secret        // for AuthPassword, if it may be stored: the client then signs in again by itself when a login expires
	cookies  []loginCookie // of the login

	// Account identifies the account: a hash of the Remote address and the user name. It is empty
	// until [Credentials.For] sets it.
	Account string
}

// loginCookie is one session cookie of a login (doc/hermes/api.md §10).
type loginCookie struct {
	name    string
	value   Secret    // as it is sent in the Cookie header, quotes included
	expires time.Time // zero if the cookie has no expiry
	secure  bool      // sent over TLS only
}

// binding returns the account of a profile.
func binding(p Profile) string {
	address := p.Remote
	if u, err := parseAddress(p.Remote, p.Kind); err == nil {
		address = u.String()
	}
	sum := sha256.Sum256([]byte(address + "\n" + p.Username))
	return hex.EncodeToString(sum[:])
}

// For returns the credentials for use with profile p. Credentials of another account, that is of
// another Remote address or user name, are dropped: a changed profile never sends them to another
// server. Credentials without an account are assigned to that of p.
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

// Export returns the credentials as one secret in JSON form. Encrypt it before you store it;
// [ParseCredentials] decodes it.
func (c Credentials) Export() (Secret, error) {
	out := exported{Token: c.Token.Reveal(), Password: c.Password.Reveal(), Binding: c.Account}
	for _, cookie := range c.cookies {
		out.Cookies = append(out.Cookies, exportedCookie{Name: cookie.name, Value: cookie.value.Reveal(), Expires: cookie.expires, Secure: cookie.secure})
	}
	data, err := json.Marshal(out)
	return NewSecret(string(data)), err
}

// ParseCredentials decodes the result of [Credentials.Export]. It drops cookies that a login could
// not have set.
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
