package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// prove finds out whether an address leads to the gateway of the profile: TLS or a private network, its health without
// any credential, and then the one request with the credential whose answer must match what was learnt.
func (c *Client) prove(ctx context.Context, l *link) (*conn, error) {
	version := ""
	if c.kind == Hermes {
		err := within(ctx, l, func(ctx context.Context) (err error) {
			version, err = l.health(ctx)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	cn := c.newConn(l)
	if l.base.Scheme == "http" && c.secureOnly() {
		return nil, errSecureOnly
	}
	// Cookies that the answer sets are taken once it is known whose they are.
	var answers []*http.Response
	cn.answered = func(resp *http.Response) { answers = append(answers, resp) }
	if l.kind == Remote && c.profileAuth() == AuthPassword {
		// A Local address that knows no session of Remote's would lead to a login with each choice.
		cn.signIn = func(sent *http.Request) bool { return c.signInAgain(ctx, sent.Header.Get("Cookie")) == nil }
	}
	err := within(ctx, l, func(ctx context.Context) (err error) {
		cn.caps, err = c.check(ctx, cn, version)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.confirm(l, cn.caps); err != nil {
		return nil, err
	}
	cn.answered = func(resp *http.Response) { c.takeCookies(resp, l) }
	for _, resp := range answers {
		cn.answered(resp)
	}
	if c.profileAuth() == AuthPassword {
		cn.signIn = func(sent *http.Request) bool {
			return c.signInAgain(sent.Context(), sent.Header.Get("Cookie")) == nil
		}
	}
	if c.profile.Jobs == JobsOn && c.kind == Hermes { // neither changes
		cn.caps = cn.caps.withJobs()
	}
	cn.route = Route{Kind: l.kind, Since: c.options.Clock()}
	return cn, nil
}

// within bounds a step of proving. What the step says is not a deadline of the caller's.
func within(ctx context.Context, l *link, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	return step(ctx)
}

// newConn is the conn of a link: its credential goes to the host of the link and nowhere else.
func (c *Client) newConn(l *link) *conn {
	return &conn{
		route: Route{Kind: l.kind}, base: l.base, http: l.http, scrub: c.scrub,
		authorize: func(req *http.Request) {
			req.Header.Del("Authorization")
			req.Header.Del("Cookie")
			if req.URL.Scheme == l.base.Scheme && req.URL.Host == l.base.Host {
				c.authorize(req, l)
			}
		},
	}
}

func (c *Client) authorize(req *http.Request, l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch c.profile.Auth {
	case AuthBearer:
		if !c.creds.Token.IsZero() {
			req.Header.Set("Authorization", "Bearer "+c.creds.Token.Reveal()) // the scheme is case sensitive (api-facts §0.1)
		}
	case AuthPassword:
		if header := cookieHeader(c.creds.Cookies, l.base.Scheme == "https", c.options.Clock()); header != "" {
			req.Header.Set("Cookie", header)
		}
	}
}

func (c *Client) profileAuth() AuthMode {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.profile.Auth
}

// signedIn sees to it that there is a credential to send, and makes a login where there is no session and a password is kept.
func (c *Client) signedIn(ctx context.Context) error {
	c.mu.Lock()
	auth, token := c.profile.Auth, c.creds.Token.Reveal()
	cookies := cookieHeader(c.creds.Cookies, true, c.options.Clock())
	c.mu.Unlock()
	switch {
	case auth == AuthBearer && token == "":
		return fmt.Errorf("%w: no key is kept for this gateway", ErrSignIn)
	case auth == AuthBearer && !validToken(token):
		return fmt.Errorf("%w: the kept key has characters that no key has", ErrSignIn)
	case auth == AuthPassword && !carriesSession(cookies):
		return c.signInAgain(ctx, cookies)
	}
	return nil
}

// secureOnly reports whether a session exists that may not travel over plain http.
func (c *Client) secureOnly() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.options.Clock()
	return c.profile.Auth == AuthPassword && carriesSession(cookieHeader(c.creds.Cookies, true, now)) && !carriesSession(cookieHeader(c.creds.Cookies, false, now))
}

// validToken keeps line ends and the like out of the header.
func validToken(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// check makes the authenticated request. A gateway without capabilities is asked for its models, and so is any other server.
func (c *Client) check(ctx context.Context, cn *conn, version string) (*Capabilities, error) {
	if c.kind == Hermes {
		req, err := cn.requestPath(ctx, http.MethodGet, "/v1/capabilities", nil, nil)
		if err != nil {
			return nil, err
		}
		var raw rawJSON
		err = cn.call(req, &raw)
		var refused *Error
		switch {
		case err == nil:
			caps, err := ParseCapabilities(raw)
			if err != nil {
				return nil, errNotGateway
			}
			caps.Version = version
			if caps.Platform != "hermes-agent" {
				return nil, &identityError{"its platform is not Hermes"}
			}
			return caps, nil
		case errors.As(err, &refused) && refused.Status/100 == 3:
			return nil, errRedirect
		case errors.Is(err, errUnreadable):
			return nil, errNotGateway
		case !errors.As(err, &refused) || refused.Status != http.StatusNotFound && refused.Status != http.StatusMethodNotAllowed:
			return nil, err
		}
	}
	req, err := cn.requestPath(ctx, http.MethodGet, "/v1/models", nil, nil)
	if err != nil {
		return nil, err
	}
	var list modelList
	if err := cn.call(req, &list); err != nil {
		var refused *Error
		if errors.As(err, &refused) && refused.Status/100 == 3 {
			return nil, errRedirect
		}
		return nil, err
	}
	if list.Data == nil {
		return nil, errNotGateway
	}
	caps := list.capabilities()
	if c.kind == Hermes {
		caps.Platform, caps.Version = "hermes-agent", version
		if len(list.Data) > 0 {
			caps.Model = list.Data[0].ID
		}
	}
	return caps, nil
}

// rawJSON takes an answer as it is.
type rawJSON []byte

func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = slices.Clone(data)
	return nil
}

// confirm compares a route with what was learnt, and keeps what is new.
func (c *Client) confirm(l *link, caps *Capabilities) error {
	c.mu.Lock()
	next, err := recognize(c.profile.Identity, seen(caps, l.kind, l.key()), l.kind)
	changed := err == nil && (c.profile.Identity == nil || *c.profile.Identity != next)
	if changed {
		c.profile.Identity = &next
	}
	c.mu.Unlock()
	if changed && c.options.OnProfile != nil {
		c.telling.Lock()
		defer c.telling.Unlock()
		c.options.OnProfile(c.Profile())
	}
	return err
}

// learntKey is the public key that was learnt for a route.
func (c *Client) learntKey(kind RouteKind) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.profile.Identity == nil:
		return ""
	case kind == Local:
		return c.profile.Identity.LocalKey
	default:
		return c.profile.Identity.RemoteKey
	}
}
