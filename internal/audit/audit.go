// Package audit carries who acts, and from where, in a context: from the request that began an act to
// the transaction that records it in the audit log (internal/store).
package audit

import (
	"context"
	"fmt"
)

// Actors that are not a device or a user.
const (
	ActorServer = "server" // the server itself: expiry, sweeps, a reload of its settings
	ActorSocket = "socket" // a command of hermes-mobile, over the admin socket
	ActorAdmin  = "admin"  // the owner in the admin UI
	ActorCode   = "code"   // whoever redeemed a pairing code

	ActorStranger = "stranger" // somebody who was not let in
)

// ActorDevice is the actor of what a device did.
func ActorDevice(id string) string { return "device:" + id }

// ActorUser is the actor of what a user did.
func ActorUser(id string) string { return "user:" + id }

// By says who acts and from where.
type By struct {
	// Actor is one of the constants above, or the result of ActorDevice or ActorUser.
	Actor string
	// Origin is an address, or "uid N" at the other end of the admin socket. It is empty where the
	// act began in the server.
	Origin string
}

// String is for log lines.
func (b By) String() string {
	if b.Origin == "" {
		return b.Actor
	}
	return fmt.Sprintf("%s (%s)", b.Actor, b.Origin)
}

type key struct{}

// With returns a context that carries by.
func With(ctx context.Context, by By) context.Context { return context.WithValue(ctx, key{}, by) }

// From returns who acts, which is the server where the context does not say.
func From(ctx context.Context) By {
	if by, ok := ctx.Value(key{}).(By); ok {
		return by
	}
	return By{Actor: ActorServer}
}
