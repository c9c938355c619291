package gateway

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"
)

// RouteKind names the address of a profile that a route uses.
type RouteKind string

// The kinds of routes.
const (
	Local  RouteKind = "local"
	Remote RouteKind = "remote"
)

// Route describes the address that a client uses.
type Route struct {
	Kind       RouteKind `json:"kind"`
	LocalErr   error     `json:"-"` // why the Local address cannot be used; nil if it is used or not set
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason"`     // why the client selected it, a sentence without any host
	Generation uint64    `json:"generation"` // grows with each selection, and orders them
}

// NoRouteError says for each address why it cannot be used. It is [ErrNoRoute], and also
// [ErrSignIn] or [ErrIdentity] if that is the reason. Its text names no host.
type NoRouteError struct {
	Local  error // nil if the profile has none, or if it was not tried because there is no credential
	Remote error
}

func (e *NoRouteError) Error() string {
	if e.Local == nil {
		return ErrNoRoute.Error() + ": " + withoutPrefix(e.Remote)
	}
	return ErrNoRoute.Error() + ": local address: " + withoutPrefix(e.Local) + "; remote address: " + withoutPrefix(e.Remote)
}

// Unwrap returns ErrNoRoute and the reasons.
func (e *NoRouteError) Unwrap() []error {
	causes := []error{ErrNoRoute}
	for _, err := range []error{e.Local, e.Remote} {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// Route returns the route in use. ok is false if no route is selected.
func (c *Client) Route() (route Route, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return Route{}, false
	}
	return c.current.route, true
}

// WatchRoute yields the route in use, if any, and then each newly selected one, until ctx ends or
// the client closes. A slow caller skips routes and gets the newest.
func (c *Client) WatchRoute(ctx context.Context) iter.Seq[Route] {
	return func(yield func(Route) bool) {
		var last uint64
		for {
			c.mu.Lock()
			changed, current := c.changed, c.current
			c.mu.Unlock()
			if current != nil && current.route.Generation > last {
				last = current.route.Generation
				if !yield(current.route) {
					return
				}
				continue
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			case <-c.ctx.Done():
				return
			}
		}
	}
}

// routeSelection is one selection of a route, shared by all requests that wait for it.
type routeSelection struct {
	done chan struct{}
	cn   *conn
	err  error
}

// selectRoute finds a route and makes it the current one. If the network changes meanwhile, the
// result is worthless and it tries again, at most three times.
func (c *Client) selectRoute(ch *routeSelection) {
	for range 3 {
		c.mu.Lock()
		epoch := c.epoch
		c.stale = false
		c.mu.Unlock()
		ch.cn, ch.err = c.findRoute()
		c.mu.Lock()
		again := c.epoch != epoch && !c.closed
		c.mu.Unlock()
		if !again {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(ch.done)
	c.selecting = nil
	if c.closed {
		ch.cn, ch.err = nil, ErrClosed
	}
	c.current = ch.cn
	if ch.cn == nil {
		level := slog.LevelInfo
		if problem := ch.err.Error(); problem == c.lastProblem {
			level = slog.LevelDebug // already logged
		} else {
			c.lastProblem = problem
		}
		c.options.Log.Log(c.ctx, level, "no route to the gateway", "reason", c.reason, "err", ch.err)
		return
	}
	c.lastProblem = ""
	c.generation++
	ch.cn.route.Generation = c.generation // set before another goroutine sees it
	close(c.changed)
	c.changed = make(chan struct{})
	route := ch.cn.route
	c.options.Log.Info("route selected", "route", route.Kind, "generation", route.Generation, "reason", c.reason, "because", route.Reason)
}

// findRoute tries the Local address, then immediately the Remote one.
func (c *Client) findRoute() (*conn, error) {
	reason := "the profile has one address"
	var localErr error
	if err := c.account.ensureSignedIn(c.ctx); err != nil {
		c.mu.Lock()
		c.recordFailure(Remote, err)
		c.mu.Unlock()
		return nil, &NoRouteError{Remote: err}
	}
	if c.local != nil {
		cn, err := c.verify(c.ctx, c.local)
		if err == nil {
			cn.route.Reason = "the local address answers"
			return cn, nil
		}
		c.mu.Lock()
		c.recordFailure(Local, err)
		c.mu.Unlock()
		localErr = err
		reason = "the local address cannot be used: " + plainText(err)
	}
	cn, err := c.verify(c.ctx, c.remote)
	if err == nil {
		cn.route.Reason, cn.route.LocalErr = reason, localErr
		return cn, nil
	}
	c.mu.Lock()
	c.recordFailure(Remote, err)
	c.mu.Unlock()
	return nil, &NoRouteError{Local: localErr, Remote: err}
}

// plainText returns the text of an error without the gateway's own words, which could be anything.
func plainText(err error) string {
	var refused *Error
	if !errors.As(err, &refused) {
		return withoutPrefix(err)
	}
	if errors.Is(err, ErrSignIn) {
		return "the gateway refused the credential"
	}
	return withoutPrefix(&Error{Status: refused.Status})
}
