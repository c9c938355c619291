package gateway

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"
)

// RouteKind tells which of the two addresses of a profile a route uses.
type RouteKind string

// The kinds of routes.
const (
	Local  RouteKind = "local"
	Remote RouteKind = "remote"
)

// Route is the way a client uses now.
type Route struct {
	Kind       RouteKind `json:"kind"`
	LocalErr   error     `json:"-"`
	Since      time.Time `json:"since"`
	Reason     string    `json:"reason"`     // why this one, in a plain sentence without any host
	Generation uint64    `json:"generation"` // grows with each choice, so a later choice is never taken for an earlier one
}

// NoRouteError says of each address why it cannot be used. It is [ErrNoRoute], and [ErrSignIn] or [ErrIdentity] where that
// is the cause at one of them. Its text names no host.
type NoRouteError struct {
	Local  error // nil: there is no such address, or it was not tried for want of a credential
	Remote error
}

func (e *NoRouteError) Error() string {
	if e.Local == nil {
		return ErrNoRoute.Error() + ": " + withoutPrefix(e.Remote)
	}
	return ErrNoRoute.Error() + ": local address: " + withoutPrefix(e.Local) + "; remote address: " + withoutPrefix(e.Remote)
}

// Unwrap gives the causes.
func (e *NoRouteError) Unwrap() []error {
	causes := []error{ErrNoRoute}
	for _, err := range []error{e.Local, e.Remote} {
		if err != nil {
			causes = append(causes, err)
		}
	}
	return causes
}

// Route returns the route of the newest choice; ok is false where there is none in use.
func (c *Client) Route() (route Route, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return Route{}, false
	}
	return c.current.route, true
}

// Watch yields the route in use, if there is one, and then each newly chosen one, until ctx ends or the client is closed.
// Who is slow gets the newest only.
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

// choice is one choosing of a route, shared by all who wait for it.
type routeSelection struct {
	done chan struct{}
	cn   *conn
	err  error
}

// choose finds a route and makes it the current one. Where the network changed meanwhile what was found is worth nothing,
// so it looks again, a few times.
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
			level = slog.LevelDebug // it was said
		} else {
			c.lastProblem = problem
		}
		c.options.Log.Log(c.ctx, level, "no route to the gateway", "reason", c.reason, "err", ch.err)
		return
	}
	c.lastProblem = ""
	c.generation++
	ch.cn.route.Generation = c.generation // before anybody else has it
	close(c.changed)
	c.changed = make(chan struct{})
	route := ch.cn.route
	c.options.Log.Info("route selected", "route", route.Kind, "generation", route.Generation, "reason", c.reason, "because", route.Reason)
}

// find tries the Local address, and then Remote at once.
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

// plain is an error without what a gateway said, which might be anything.
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
