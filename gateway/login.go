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

// maxLoginField is the most bytes of a password that a login sends.
const maxLoginField = 4096

func (a *account) login(ctx context.Context, password Secret) error {
	if a.auth() != AuthPassword {
		return &ProfileError{Field: "auth", Problem: "must be password to sign in with a password"}
	}
	if password.IsZero() {
		return fmt.Errorf("%w: the password is empty", ErrSignIn)
	}
	if err := a.lockLogin(ctx); err != nil {
		return err
	}
	defer a.unlockLogin()
	return a.sendLogin(ctx, password)
}

// logout signs out over cn, a conn of the Remote address, and drops the credentials. done is false if ctx ended
// before it began.
func (a *account) logout(ctx context.Context, cn *conn) (done bool, err error) {
	if err := a.lockLogin(ctx); err != nil {
		return false, err
	}
	defer a.unlockLogin()
	if a.auth() == AuthPassword {
		err = a.sendLogout(ctx, cn)
	}
	a.setCredentials(func(creds *Credentials) bool {
		*creds = Credentials{Account: creds.Account}
		return true
	})
	return true, err
}

func (a *account) sendLogout(ctx context.Context, cn *conn) error {
	cn.onResponse = func(*http.Response) {}
	if _, err := a.remote.healthWithin(ctx); err != nil {
		return err
	}
	req, err := cn.requestPath(ctx, http.MethodPost, "/auth/logout", nil, struct{}{})
	if err != nil || !carriesSession(req.Header.Get("Cookie")) {
		return err
	}
	err = cn.call(req, nil)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status/100 == 3 || refused.Status == http.StatusUnauthorized) {
		return nil // a redirect to the login page, or the session had ended
	}
	return err
}

func (t *target) healthWithin(ctx context.Context) (version string, err error) {
	err = withStepTimeout(ctx, t, func(ctx context.Context) error {
		version, err = t.health(ctx)
		return err
	})
	return version, err
}

// signInAgain signs in with the stored password, once for all requests that were refused with the same cookies.
func (a *account) signInAgain(ctx context.Context, sent string) error {
	if err := a.lockLogin(ctx); err != nil {
		return err
	}
	defer a.unlockLogin()
	a.mu.Lock()
	now := cookieHeader(a.creds.cookies, true, a.options.Clock())
	password, rejected := a.creds.Password, a.rejectedPassword
	a.mu.Unlock()
	switch {
	case carriesSession(now) && now != sent:
		return nil // another request signed in
	case password.IsZero():
		return fmt.Errorf("%w: the session has ended and no password is stored", ErrSignIn)
	case password == rejected:
		return fmt.Errorf("%w: the gateway refused the stored password", ErrSignIn)
	}
	return a.sendLogin(ctx, password)
}

func (a *account) lockLogin(ctx context.Context) error {
	select {
	case a.loginToken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-a.done:
		return ErrClosed
	}
}

func (a *account) unlockLogin() { <-a.loginToken }

// sendLogin signs in at the Remote address, once its health check has shown that a Hermes gateway is there.
func (a *account) sendLogin(ctx context.Context, password Secret) error {
	if len(password.Reveal()) > maxLoginField {
		return fmt.Errorf("%w: the password is longer than %d bytes", ErrTooLarge, maxLoginField)
	}
	if _, err := a.remote.healthWithin(ctx); err != nil {
		return err
	}
	var cookies []loginCookie
	err := withStepTimeout(ctx, a.remote, func(ctx context.Context) (err error) {
		cookies, err = a.remote.logIn(ctx, a.remote.loginProvider(ctx), a.currentProfile().Username, password, a.options.Clock())
		return err
	})
	a.setCredentials(func(creds *Credentials) bool {
		creds.cookies = cookies // none after a failure
		if err == nil {
			creds.Password = password
		}
		return true
	})
	switch {
	case err == nil:
		a.setRejected(Secret{})
		a.reselect("signed in")
	case errors.Is(err, ErrSignIn):
		a.setRejected(password)
	}
	return err
}

func (a *account) setRejected(password Secret) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rejectedPassword = password
}

// loginProvider returns the login provider that takes a password. "basic" is the only one that was measured, and the
// default.
func (t *target) loginProvider(ctx context.Context) string {
	const usual = "basic"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.base.String(), "/")+"/api/auth/providers", nil)
	if err != nil {
		return usual
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := t.http.Do(req)
	if err != nil {
		return usual // the login itself will report what is wrong
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

// logIn posts the login. It uses only the status and the cookies of the response.
func (t *target) logIn(ctx context.Context, provider, username string, password Secret, now time.Time) ([]loginCookie, error) {
	body, err := json.Marshal(map[string]string{"provider": provider, "username": username, "password": password.Reveal(), "next": ""})
	if err != nil {
		return nil, errors.New("gateway: login request cannot be encoded")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(t.base.String(), "/")+"/auth/password-login", bytes.NewReader(body))
	if err != nil {
		return nil, errMalformedAddress
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := t.http.Do(req)
	if err != nil {
		return nil, &networkError{cause: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, loginRefusal(resp)
	}
	cookies, _ := merge(nil, readSetCookies(resp, t.base.Scheme == "https", now))
	if !carriesSession(cookieHeader(cookies, true, now)) {
		return nil, &Error{Status: resp.StatusCode, Code: "no_session", Message: "the gateway accepted the login, but set no session cookie that can be used"}
	}
	return cookies, nil
}

// loginRefusal describes a failed login in words of this package: the body of a 422 quotes the password.
func loginRefusal(resp *http.Response) *Error {
	e := &Error{Status: resp.StatusCode, Code: "login_failed", Message: "the login failed"}
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		e.Message = "the user name or password is wrong"
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		e.Message = "this gateway has no password login"
	case http.StatusUnprocessableEntity:
		e.Message = "this gateway expects another form of login"
	case http.StatusBadRequest:
		e.Message = "this gateway accepts no logins at this address"
	case http.StatusTooManyRequests:
		e.Message = "too many login attempts; wait a minute and try again"
		if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
			e.RetryAfter = time.Duration(seconds) * time.Second
		}
	default:
		if resp.StatusCode/100 == 3 {
			e.Message = "the gateway answered the login with a redirect, which is not followed"
		}
	}
	return e
}
