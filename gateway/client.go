package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Client is the client of one gateway. All methods may be called concurrently.
//
// It chooses a route when one is needed: before a request where there is none, and anew after [Client.Foreground],
// [Client.NetworkChanged], [Client.Reevaluate], [Client.Connect] and a request that failed below HTTP. A request or stream in
// progress keeps the route it began on.
type Client struct {
	current *conn
	turns   sessionQueue

	mu       sync.Mutex // guards current and what stands here
	stale    bool       // the next request chooses anew
	reason   string     // why
	epoch    uint64     // grows with each change of the network
	choosing *choice
	chosen   uint64        // generation of the newest route
	without  string        // why there is none, as it was last logged
	changed  chan struct{} // closed when the route changes
	closed   bool
	profile  *Profile // behind a pointer, so that no verb of fmt prints its addresses
	creds    Credentials
	refused  Secret // a kept password that did not open the gateway
	failures []Failure

	options       Options
	kind          Kind
	insecure      bool
	local, remote *link // local is nil where there is no such address
	lines         lines
	login         chan struct{} // holds one token: of the login that is being made
	telling       sync.Mutex    // callbacks of the host program, one at a time

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New makes a client. Nothing is sent before the first request. Credentials of another account are dropped
// ([Credentials.For]). The error names what is wrong with the profile ([*ProfileError]). [Client.Close] ends what the
// client started.
func New(profile Profile, credentials Credentials, options Options) (*Client, error) {
	if err := profile.Validate(); err != nil {
		return nil, fmt.Errorf("the profile cannot be used: %w", err)
	}
	own := profile.clone()
	c := &Client{
		options: options.filled(), kind: profile.Kind, insecure: profile.Insecure, profile: &own, creds: credentials.For(profile),
		changed: make(chan struct{}), login: make(chan struct{}, 1), stale: true, reason: "the first request",
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	remote, err := parseAddress(profile.Remote, profile.Kind)
	if err != nil {
		return nil, &ProfileError{Field: "remote", Problem: err.Error()}
	}
	c.remote = c.newLink(Remote, remote, normalPin(profile.RemoteKey), c.options.RemoteTimeout)
	if profile.Local != "" {
		local, err := parseAddress(profile.Local, profile.Kind)
		if err != nil {
			return nil, &ProfileError{Field: "local", Problem: err.Error()}
		}
		c.local = c.newLink(Local, local, normalPin(profile.LocalKey), c.options.ProbeTimeout)
	}
	if watcher := c.options.Watch; watcher != nil {
		c.work.Go(func() {
			if err := watcher.Watch(c.ctx, c.NetworkChanged); err != nil {
				c.options.Log.Warn("changes of the network are not seen", "error", err)
			}
		})
	}
	return c, nil
}

// Close ends the client: requests in progress fail, and every goroutine of the client has ended when it returns. The turns
// of the gateway go on.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed, c.current = true, nil
	c.mu.Unlock()
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	c.lines.closeAll()
	c.work.Wait()
	for _, l := range []*link{c.local, c.remote} {
		if l != nil {
			l.http.CloseIdleConnections()
		}
	}
	return nil
}

// connected returns the route in use, and chooses one where there is none. Callers that come meanwhile share one choice,
// which goes on when its first caller leaves.
func (c *Client) connected(ctx context.Context) (*conn, error) {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, ErrClosed
	case c.current != nil && !c.stale:
		defer c.mu.Unlock()
		return c.current, nil
	case c.remote == nil:
		c.mu.Unlock()
		return nil, ErrNoRoute
	}
	if c.choosing == nil {
		ch := &choice{done: make(chan struct{})}
		c.choosing = ch
		c.work.Go(func() { c.choose(ch) })
	}
	ch := c.choosing
	c.mu.Unlock()
	select {
	case <-ch.done:
		return ch.cn, ch.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// failed says that a request on cn failed in a way that speaks against the route: the next one chooses anew. A request that
// its caller gave up says nothing.
func (c *Client) failed(cn *conn, err error) {
	if cn == nil || c.remote == nil || errors.Is(err, context.Canceled) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(cn.route.Kind, err)
	if c.current == cn {
		c.current, c.stale, c.reason = nil, true, "a request failed"
	}
}

// Connect chooses a route now and returns it. The error is a [*NoRouteError], [ErrClosed] or that of ctx.
func (c *Client) Connect(ctx context.Context) (Route, error) {
	c.reevaluate("asked to connect", false)
	cn, err := c.connected(ctx)
	if err != nil {
		return Route{}, err
	}
	return cn.route, nil
}

// Foreground says that the app is seen again: the next request chooses anew.
func (c *Client) Foreground() { c.reevaluate("the app came to the foreground", false) }

// NetworkChanged says that the network is another one: idle connections are closed, and the next request chooses anew.
func (c *Client) NetworkChanged() { c.reevaluate("the network changed", true) }

// Reevaluate lets the next request choose anew, for a reason that diagnostics show.
func (c *Client) Reevaluate(reason string) { c.reevaluate(reason, false) }

func (c *Client) reevaluate(reason string, network bool) {
	reason = c.scrub(reason)
	c.mu.Lock()
	c.stale, c.reason = true, reason
	if network {
		c.epoch++
	}
	c.mu.Unlock()
	if network && c.remote != nil {
		for _, l := range []*link{c.local, c.remote} {
			if l != nil {
				l.http.CloseIdleConnections()
			}
		}
	}
}

// Profile returns the profile with what was learnt.
func (c *Client) Profile() Profile {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.profile.clone()
}

// Capabilities returns what the gateway offers on the route in use, and chooses one where there is none.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	cn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return cn.caps, nil
}

// String tells the profile's name and the route.
func (c *Client) String() string {
	route, ok := c.Route()
	if !ok {
		return "gateway client without a route"
	}
	return "gateway client on the " + string(route.Kind) + " route"
}

// Format writes String, whatever the verb.
func (c *Client) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue is what log/slog writes.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// scrub takes this client's secrets and hosts out of a text that somebody else wrote.
func (c *Client) scrub(s string) string {
	if s == "" {
		return s
	}
	c.mu.Lock()
	words := []string{c.creds.Token.Reveal(), c.creds.Password.Reveal()}
	for _, cookie := range c.creds.Cookies {
		words = append(words, cookie.Value.Reveal(), strings.Trim(cookie.Value.Reveal(), `"`))
	}
	c.mu.Unlock()
	for _, l := range []*link{c.local, c.remote} {
		if l != nil {
			words = append(words, l.base.Host, l.base.Hostname())
		}
	}
	for _, word := range words {
		if len(word) >= 4 { // a shorter one, such as basic's provider name cut short, occurs by chance
			s = strings.ReplaceAll(s, word, redacted)
		}
	}
	return s
}
