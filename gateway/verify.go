package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
)

// verify checks that an address leads to the gateway of the profile. It asks for the gateway's health over TLS or a
// private network without a credential. Then it sends the first request with one, whose response must match the
// learned identity.
func (c *Client) verify(ctx context.Context, t *target) (*conn, error) {
	version := ""
	if c.kind == Hermes {
		var err error
		if version, err = t.healthWithin(ctx); err != nil {
			return nil, err
		}
	}
	cn := c.newConn(t)
	if t.base.Scheme == "http" && c.account.needsTLS() {
		return nil, errSecureOnly
	}
	// Cookies of the response are stored only once it is known whose they are.
	var responses []*http.Response
	cn.onResponse = func(resp *http.Response) { responses = append(responses, resp) }
	password := c.account.auth() == AuthPassword
	if t.kind == Remote && password {
		// Not for Local: an address that does not know the sessions of Remote would cause a login at each selection.
		cn.signIn = func(sent *http.Request) bool { return c.account.signInAgain(ctx, sent.Header.Get("Cookie")) == nil }
	}
	err := withStepTimeout(ctx, t, func(ctx context.Context) (err error) {
		cn.caps, err = c.fetchCapabilities(ctx, cn, version)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.account.checkIdentity(t, cn.caps); err != nil {
		return nil, err
	}
	cn.onResponse = func(resp *http.Response) { c.account.takeCookies(resp, t) }
	for _, resp := range responses {
		cn.onResponse(resp)
	}
	if password {
		cn.signIn = func(sent *http.Request) bool {
			return c.account.signInAgain(sent.Context(), sent.Header.Get("Cookie")) == nil
		}
	}
	if c.account.currentProfile().Jobs == JobsOn && c.kind == Hermes {
		cn.caps = cn.caps.withJobs()
	}
	cn.route = Route{Kind: t.kind, Since: c.options.Clock()}
	return cn, nil
}

// withStepTimeout runs one step of verifying a target within its time limit.
func withStepTimeout(ctx context.Context, t *target, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, t.stepTimeout)
	defer cancel()
	return step(ctx)
}

// newConn returns a conn of a target. Its credential is sent to the host of the target and nowhere else.
func (c *Client) newConn(t *target) *conn {
	return &conn{
		route: Route{Kind: t.kind}, base: t.base, http: t.http, scrub: c.scrub,
		authorize: func(req *http.Request) {
			req.Header.Del("Authorization")
			req.Header.Del("Cookie")
			if req.URL.Scheme == t.base.Scheme && req.URL.Host == t.base.Host {
				c.account.authorize(req, t)
			}
		},
	}
}

// fetchCapabilities sends the first request with a credential. A gateway without capabilities, and every server that
// is not Hermes, is asked for its models instead.
func (c *Client) fetchCapabilities(ctx context.Context, cn *conn, version string) (*Capabilities, error) {
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
			caps, err := parseCapabilities(raw)
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

// rawJSON is a JSON value as it was received.
type rawJSON []byte

// UnmarshalJSON stores a copy of data.
func (r *rawJSON) UnmarshalJSON(data []byte) error {
	*r = slices.Clone(data)
	return nil
}
