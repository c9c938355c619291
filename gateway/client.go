package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
)

// Client is a client of one gateway. Create it with [New] and end it with [Client.Close]. All
// methods may be called concurrently.
//
// The calls of the API are grouped into the services below. Turns are started with
// [Client.StartTurn].
//
// The client selects a route when it needs one: before the first request, and again after
// [Client.Foreground], [Client.NetworkChanged], [Client.Reevaluate], [Client.Connect] and a request
// that failed below HTTP. A request or stream in progress keeps its route.
type Client struct {
	Sessions *SessionService // sessions and their messages
	Jobs     *JobService     // scheduled jobs
	Models   *ModelService   // models and their providers
	Tools    *ToolService    // skills and toolsets of the agent

	current *conn
	turns   sessionQueue

	mu          sync.Mutex // guards current and the fields below, up to failures
	stale       bool       // the next request selects a route
	reason      string     // why it does
	epoch       uint64     // grows with each change of the network
	selecting   *routeSelection
	generation  uint64        // of the newest route
	lastProblem string        // why there is no route, as last logged
	changed     chan struct{} // closed when the route changes
	closed      bool
	failures    []RouteFailure

	options       Options
	kind          ServerKind
	insecure      bool
	local, remote *target // local is nil if the profile has no Local address
	conns         connTracker
	account       account

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New returns a client of the gateway that profile describes. It sends nothing: the first request
// connects.
//
// Credentials that belong to another account are dropped (see [Credentials.For]). The error joins
// one [*ProfileError] for each field of the profile that is not valid.
func New(profile Profile, credentials Credentials, options Options) (*Client, error) {
	if err := profile.Validate(); err != nil {
		return nil, err
	}
	c := &Client{
		options: options.withDefaults(), kind: profile.Kind, insecure: profile.Insecure,
		changed: make(chan struct{}), stale: true, reason: "first request",
	}
	c.Sessions, c.Jobs, c.Models, c.Tools = &SessionService{c}, &JobService{c}, &ModelService{c}, &ToolService{c}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	remote, err := parseAddress(profile.Remote, profile.Kind)
	if err != nil {
		return nil, &ProfileError{Field: "remote", Problem: err.Error()}
	}
	c.remote = c.newTarget(Remote, remote, normalPin(profile.RemoteKey), c.options.RemoteTimeout)
	if profile.Local != "" {
		local, err := parseAddress(profile.Local, profile.Kind)
		if err != nil {
			return nil, &ProfileError{Field: "local", Problem: err.Error()}
		}
		c.local = c.newTarget(Local, local, normalPin(profile.LocalKey), c.options.ProbeTimeout)
	}
	c.account.init(c.ctx, profile, credentials, c.options, c.remote, func(reason string) { c.reevaluate(reason, false) })
	if watch := c.options.WatchNetwork; watch != nil {
		c.work.Go(func() {
			if err := watch(c.ctx, c.NetworkChanged); err != nil {
				c.options.Log.Warn("network changes are not watched", "err", err)
			}
		})
	}
	return c, nil
}

// Close ends the client. Requests in progress fail with [ErrClosed], and every goroutine of the
// client has ended when Close returns. Runs continue at the gateway. It always returns nil.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed, c.current = true, nil
	c.mu.Unlock()
	if c.cancel == nil {
		return nil
	}
	c.cancel()
	c.conns.closeAll()
	c.work.Wait()
	for _, t := range c.targets() {
		t.http.CloseIdleConnections()
	}
	return nil
}

// targets returns the addresses of the profile.
func (c *Client) targets() (all []*target) {
	for _, t := range []*target{c.local, c.remote} {
		if t != nil {
			all = append(all, t)
		}
	}
	return all
}

// connected returns the route in use, and selects one first if necessary. Concurrent callers share
// one selection, which continues when the caller that started it leaves.
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
	if c.selecting == nil {
		selection := &routeSelection{done: make(chan struct{})}
		c.selecting = selection
		c.work.Go(func() { c.selectRoute(selection) })
	}
	selection := c.selecting
	c.mu.Unlock()
	select {
	case <-selection.done:
		return selection.cn, selection.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dropRoute takes cn out of use after a request on it failed with err, so that the next request
// selects a route. A request that its caller canceled does not count.
func (c *Client) dropRoute(cn *conn, err error) {
	if cn == nil || c.remote == nil || errors.Is(err, context.Canceled) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordFailure(cn.route.Kind, err)
	if c.current == cn {
		c.current, c.stale, c.reason = nil, true, "a request failed"
	}
}

// Connect selects a route now and returns it. The error is a [*NoRouteError], [ErrClosed] or that
// of ctx.
func (c *Client) Connect(ctx context.Context) (Route, error) {
	c.reevaluate("connect requested", false)
	cn, err := c.connected(ctx)
	if err != nil {
		return Route{}, err
	}
	return cn.route, nil
}

// Foreground makes the next request select a route. Call it when the app becomes visible again.
func (c *Client) Foreground() { c.reevaluate("app came to the foreground", false) }

// NetworkChanged closes idle connections and makes the next request select a route. Call it when
// the device joins another network. [Options.WatchNetwork] can do so.
func (c *Client) NetworkChanged() { c.reevaluate("network changed", true) }

// Reevaluate makes the next request select a route. The reason appears in [Diagnostics].
func (c *Client) Reevaluate(reason string) { c.reevaluate(reason, false) }

func (c *Client) reevaluate(reason string, network bool) {
	reason = c.scrub(reason)
	c.mu.Lock()
	c.stale, c.reason = true, reason
	if network {
		c.epoch++
	}
	c.mu.Unlock()
	if network {
		for _, t := range c.targets() {
			t.http.CloseIdleConnections()
		}
	}
}

// Login signs in at the Remote address with the profile's user name, and keeps the session cookies
// and the password (doc/hermes/api.md §10). It ends the previous login of this client even if it
// fails.
//
// A refusal is an [*Error] whose text is written here, because the gateway's answer may quote the
// password. A wrong user name or password is [ErrSignIn]. A profile without [AuthPassword] is a
// [*ProfileError].
func (c *Client) Login(ctx context.Context, password Secret) error {
	return c.account.login(ctx, password)
}

// Logout ends the login at the gateway and drops all credentials of the client. The credentials are
// gone even if the error says that the gateway could not be told.
func (c *Client) Logout(ctx context.Context) error {
	done, err := c.account.logout(ctx, c.newConn(c.remote))
	if done {
		c.mu.Lock()
		c.current, c.stale, c.reason = nil, true, "signed out"
		c.mu.Unlock()
	}
	return err
}

// Profile returns the profile, including what the client learned about the gateway.
func (c *Client) Profile() Profile { return c.account.currentProfile() }

// Capabilities returns what the gateway offers on the route in use. It selects a route if there is
// none.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	cn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	return cn.caps, nil
}

// String names the kind of the route in use, and no address.
func (c *Client) String() string {
	route, ok := c.Route()
	if !ok {
		return "gateway client without a route"
	}
	return "gateway client on the " + string(route.Kind) + " route"
}

// Format writes [Client.String] for every verb, so that no verb prints an address or a secret.
func (c *Client) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.String()) }

// LogValue returns [Client.String] for log/slog.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// scrub replaces the secrets and hosts of this client in a text that somebody else wrote.
func (c *Client) scrub(s string) string {
	if s == "" {
		return s
	}
	words := c.account.secrets()
	for _, t := range c.targets() {
		words = append(words, t.base.Host, t.base.Hostname())
	}
	for _, word := range words {
		if len(word) >= 4 { // a shorter one would match by chance
			s = strings.ReplaceAll(s, word, redacted)
		}
	}
	return s
}
