package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxWords is the most bytes of a user name or password that a login sends.
const maxWords = 4096

// Login signs in with the profile's user name at the Remote address and keeps the session cookies and the password
// (api-facts §10). Once it is sent the earlier session ends here, whether or not it succeeds. A refusal is an [*Error] whose text is ours:
// an answer may quote the password. Wrong words are [ErrSignIn].
func (c *Client) Login(ctx context.Context, password Secret) error {
	if c.profileAuth() != AuthPassword {
		return &ProfileError{Field: "auth", Problem: "does not say that this gateway takes a password"}
	}
	if password.IsZero() {
		return fmt.Errorf("%w: the password is missing", ErrSignIn)
	}
	if err := c.lockLogin(ctx); err != nil {
		return err
	}
	defer c.unlockLogin()
	return c.logIn(ctx, password)
}

// Logout ends the session at the gateway, as far as it can be reached, and drops all credentials. What is dropped here is
// gone even where the error says that the gateway was not told.
func (c *Client) Logout(ctx context.Context) error {
	if err := c.lockLogin(ctx); err != nil {
		return err
	}
	defer c.unlockLogin()
	var err error
	if c.profileAuth() == AuthPassword {
		err = c.logOut(ctx)
	}
	c.setCredentials(func(creds *Credentials) bool {
		*creds = Credentials{Binding: creds.Binding}
		return true
	})
	c.mu.Lock()
	c.current, c.stale, c.reason = nil, true, "signed out"
	c.mu.Unlock()
	return err
}

func (c *Client) logOut(ctx context.Context) error {
	cn := c.newConn(c.remote)
	cn.answered = func(*http.Response) {}
	if _, err := c.remote.healthWithin(ctx); err != nil {
		return err
	}
	req, err := cn.requestPath(ctx, http.MethodPost, "/auth/logout", nil, struct{}{})
	if err != nil || !carriesSession(req.Header.Get("Cookie")) {
		return err
	}
	err = cn.call(req, nil)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status/100 == 3 || refused.Status == http.StatusUnauthorized) {
		return nil // it leads to its login page, or the session was over
	}
	return err
}

func (l *link) healthWithin(ctx context.Context) (version string, err error) {
	err = within(ctx, l, func(ctx context.Context) error {
		version, err = l.health(ctx)
		return err
	})
	return version, err
}

// signInAgain repeats the login with the kept password, once for all who were refused with the same cookies.
func (c *Client) signInAgain(ctx context.Context, sent string) error {
	if err := c.lockLogin(ctx); err != nil {
		return err
	}
	defer c.unlockLogin()
	c.mu.Lock()
	now := cookieHeader(c.creds.Cookies, true, c.options.Clock())
	password, refused := c.creds.Password, c.refused
	c.mu.Unlock()
	switch {
	case carriesSession(now) && now != sent:
		return nil // somebody else did
	case password.IsZero():
		return fmt.Errorf("%w: there is no session and no password is kept", ErrSignIn)
	case password == refused:
		return fmt.Errorf("%w: the kept password does not open the gateway", ErrSignIn)
	}
	return c.logIn(ctx, password)
}

func (c *Client) lockLogin(ctx context.Context) error {
	select {
	case c.login <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ctx.Done():
		return ErrClosed
	}
}

func (c *Client) unlockLogin() { <-c.login }

// logIn makes a login at the Remote address, after that has shown that a Hermes gateway is there.
func (c *Client) logIn(ctx context.Context, password Secret) error {
	if len(password.Reveal()) > maxWords {
		return fmt.Errorf("the password: %w", ErrTooBig)
	}
	if _, err := c.remote.healthWithin(ctx); err != nil {
		return err
	}
	var cookies []Cookie
	err := within(ctx, c.remote, func(ctx context.Context) (err error) {
		cookies, err = c.remote.logIn(ctx, c.loginProvider(ctx), c.username(), password, c.options.Clock())
		return err
	})
	c.setCredentials(func(creds *Credentials) bool {
		creds.Cookies = cookies // none after a failure
		if err == nil {
			creds.Password = password
		}
		return true
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		c.refused, c.stale, c.reason = Secret{}, true, "signed in"
	case errors.Is(err, ErrSignIn):
		c.refused = password
	}
	return err
}

func (c *Client) username() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.profile.Username
}

// loginProvider asks which way of signing in takes a password. "basic" is the only one that was measured.
func (c *Client) loginProvider(ctx context.Context) string {
	const usual = "basic"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.remote.base.String(), "/")+"/api/auth/providers", nil)
	if err != nil {
		return usual
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := c.remote.http.Do(req)
	if err != nil {
		return usual // the login itself says what is wrong
	}
	defer resp.Body.Close()
	var list struct {
		Providers []struct {
			Name     string `json:"name"`
			Password bool   `json:"supports_password"`
		} `json:"providers"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&list) != nil {
		return usual
	}
	name := ""
	for _, p := range list.Providers {
		if p.Password && (name == "" || p.Name == usual) {
			name = p.Name
		}
	}
	if name == "" {
		return usual
	}
	return name
}

// logIn posts the login. Nothing of the answer but its status and cookies is used.
func (l *link) logIn(ctx context.Context, provider, username string, password Secret, now time.Time) ([]Cookie, error) {
	body, err := json.Marshal(map[string]string{"provider": provider, "username": username, "password": password.Reveal(), "next": ""})
	if err != nil {
		return nil, errors.New("the login cannot be written")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(l.base.String(), "/")+"/auth/password-login", bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := l.http.Do(req)
	if err != nil {
		return nil, &linkError{cause: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, loginRefusal(resp)
	}
	cookies, _ := merge(nil, readSetCookies(resp, l.base.Scheme == "https", now))
	if !carriesSession(cookieHeader(cookies, true, now)) {
		return nil, &Error{Status: resp.StatusCode, Code: "no_session", Message: "the login was taken and brought no session that can be used"}
	}
	return cookies, nil
}

// loginRefusal says in our own words why a login failed: the body of a 422 quotes the password.
func loginRefusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Code: "login_failed", Message: "the login failed"}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Message = "the user name or password is wrong"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		e.Message = "this gateway takes no login with a password"
	case http.StatusUnprocessableEntity:
		e.Message = "this gateway expects another form of login"
	case http.StatusBadRequest:
		e.Message = "this gateway does not take logins under this address"
	case http.StatusTooManyRequests:
		e.Message = "too many logins were tried; wait a minute"
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			e.RetryAfter = time.Duration(seconds) * time.Second
		}
	default:
		if resp.StatusCode/100 == 3 {
			e.Message = "the login was answered with a redirect, which is not followed"
		}
	}
	return e
}

// takeCookies honours what an answer of a proven route sets and deletes, unless the request went out with cookies that are
// not the current ones: the answer to an old session must not end a new one.
func (c *Client) takeCookies(resp *http.Response, l *link) {
	if resp.Request == nil || len(resp.Header.Values("Set-Cookie")) == 0 {
		return
	}
	secure := l.base.Scheme == "https"
	c.setCredentials(func(creds *Credentials) bool {
		now := c.options.Clock()
		if c.profile.Auth != AuthPassword || resp.Request.Header.Get("Cookie") != cookieHeader(creds.Cookies, secure, now) {
			return false
		}
		next, changed := merge(creds.Cookies, readSetCookies(resp, secure, now))
		creds.Cookies = next
		return changed
	})
}

// setCredentials changes the credentials, and tells the host program where change reports one.
func (c *Client) setCredentials(change func(*Credentials) bool) {
	c.telling.Lock()
	defer c.telling.Unlock()
	c.mu.Lock()
	changed := change(&c.creds)
	creds := c.creds.For(*c.profile)
	c.mu.Unlock()
	if changed && c.options.OnCredentials != nil {
		c.options.OnCredentials(creds)
	}
}
