package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// account is the part of a client that owns the profile, the credentials and the login. It adds credentials to
// requests, takes cookies from responses, compares gateways with the learned identity, and tells the host program
// what changed.
type account struct {
	options  Options
	remote   *target // logins are sent to the Remote address only
	reselect func(reason string)
	done     <-chan struct{} // closed when the client closes

	loginToken chan struct{} // a channel of one, held by the login in progress
	callbackMu sync.Mutex    // callbacks of the host program run one at a time

	mu               sync.Mutex // guards what follows
	profile          *Profile   // a pointer, so that no verb of fmt prints its addresses
	creds            Credentials
	rejectedPassword Secret // a stored password that the gateway refused
}

func (a *account) init(ctx context.Context, profile Profile, creds Credentials, options Options, remote *target, reselect func(string)) {
	own := profile.clone()
	a.profile, a.creds, a.options, a.remote, a.reselect = &own, creds.For(profile), options, remote, reselect
	a.done, a.loginToken = ctx.Done(), make(chan struct{}, 1)
}

func (a *account) currentProfile() Profile {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.profile.clone()
}

func (a *account) auth() AuthMode {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.profile.Auth
}

// secrets returns the secrets that a text may quote.
func (a *account) secrets() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	words := []string{a.creds.Token.Reveal(), a.creds.Password.Reveal()}
	for _, cookie := range a.creds.cookies {
		words = append(words, cookie.value.Reveal(), strings.Trim(cookie.value.Reveal(), `"`))
	}
	return words
}

// authorize adds the credential to a request for t.
func (a *account) authorize(req *http.Request, t *target) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.profile.Auth {
	case AuthBearer:
		if !a.creds.Token.IsZero() {
			// Hermes compares the scheme case-sensitively (doc/hermes/api.md §0.1).
			req.Header.Set("Authorization", "Bearer "+a.creds.Token.Reveal())
		}
	case AuthPassword:
		if header := cookieHeader(a.creds.cookies, t.base.Scheme == "https", a.options.Clock()); header != "" {
			req.Header.Set("Cookie", header)
		}
	}
}

// ensureSignedIn checks that there is a credential to send. Without a session it signs in with the stored password.
func (a *account) ensureSignedIn(ctx context.Context) error {
	a.mu.Lock()
	auth, token := a.profile.Auth, a.creds.Token.Reveal()
	cookies := cookieHeader(a.creds.cookies, true, a.options.Clock())
	a.mu.Unlock()
	switch {
	case auth == AuthBearer && token == "":
		return fmt.Errorf("%w: no key is stored for this gateway", ErrSignIn)
	case auth == AuthBearer && !validToken(token):
		return fmt.Errorf("%w: the stored key contains spaces, control or non-ASCII characters", ErrSignIn)
	case auth == AuthPassword && !carriesSession(cookies):
		return a.signInAgain(ctx, cookies)
	}
	return nil
}

// validToken keeps line breaks and the like out of the header.
func validToken(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// needsTLS reports whether the session may not be sent over plain HTTP.
func (a *account) needsTLS() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.options.Clock()
	return a.profile.Auth == AuthPassword && carriesSession(cookieHeader(a.creds.cookies, true, now)) && !carriesSession(cookieHeader(a.creds.cookies, false, now))
}

// canSignIn reports whether there is a credential to send.
func (a *account) canSignIn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch a.profile.Auth {
	case AuthNone:
		return true
	case AuthBearer:
		return !a.creds.Token.IsZero()
	case AuthPassword:
		return carriesSession(cookieHeader(a.creds.cookies, true, a.options.Clock()))
	}
	return false
}

// takeCookies stores the cookies that a response of a verified route sets and deletes. It ignores the response to a
// request that was sent with other than the current cookies: the end of an old session must not end the new one.
func (a *account) takeCookies(resp *http.Response, t *target) {
	if resp.Request == nil || len(resp.Header.Values("Set-Cookie")) == 0 {
		return
	}
	secure := t.base.Scheme == "https"
	a.setCredentials(func(creds *Credentials) bool {
		now := a.options.Clock()
		if a.profile.Auth != AuthPassword || resp.Request.Header.Get("Cookie") != cookieHeader(creds.cookies, secure, now) {
			return false
		}
		next, changed := merge(creds.cookies, readSetCookies(resp, secure, now))
		creds.cookies = next
		return changed
	})
}

// setCredentials changes the credentials, and calls the host program if change reports a difference.
func (a *account) setCredentials(change func(*Credentials) bool) {
	a.callbackMu.Lock()
	defer a.callbackMu.Unlock()
	a.mu.Lock()
	changed := change(&a.creds)
	creds := a.creds.For(*a.profile)
	a.mu.Unlock()
	if changed && a.options.OnCredentials != nil {
		a.options.OnCredentials(creds)
	}
}

// checkIdentity compares the gateway behind t with the learned identity, and stores what is new.
func (a *account) checkIdentity(t *target, caps *Capabilities) error {
	a.mu.Lock()
	next, err := matchIdentity(a.profile.Identity, observedIdentity(caps, t.kind, t.key()), t.kind)
	changed := err == nil && (a.profile.Identity == nil || *a.profile.Identity != next)
	if changed {
		a.profile.Identity = &next
	}
	a.mu.Unlock()
	if changed && a.options.OnProfile != nil {
		a.callbackMu.Lock()
		defer a.callbackMu.Unlock()
		a.options.OnProfile(a.currentProfile())
	}
	return err
}

// knownKey returns the public key that was learned for a route.
func (a *account) knownKey(kind RouteKind) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.profile.Identity == nil:
		return ""
	case kind == Local:
		return a.profile.Identity.LocalKey
	default:
		return a.profile.Identity.RemoteKey
	}
}
