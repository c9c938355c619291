// Package audit carries the actor and their origin in a context, from the request that begins an
// act to the transaction that records it in the audit log (internal/store).
package audit

import (
	"context"
	"fmt"
)

// Actors other than devices and users.
const (
	ActorServer = "server" // the server itself: expiry, sweeps, a reload of its settings
	ActorSocket = "socket" // a command of hermes-mobile, over the admin socket
	ActorAdmin  = "admin"  // the owner in the admin UI
	ActorCode   = "code"   // the person who redeemed a pairing code

	ActorStranger = "stranger" // a client that was rejected
)

// ActorDevice returns the actor for an act of a device.
func ActorDevice(id string) string { return "device:" + id }

// ActorUser returns the actor for an act of a user.
func ActorUser(id string) string { return "user:" + id }

// By is an actor with their origin.
type By struct {
	// Actor is one of the constants above, or the result of ActorDevice or ActorUser.
	Actor string
	// Origin is an address, or "uid N" for the other end of the admin socket. It is empty if the
	// act began in the server.
	Origin string
}

// String formats By for log lines.
func (b By) String() string {
	if b.Origin == "" {
		return b.Actor
	}
	return fmt.Sprintf("%s (%s)", b.Actor, b.Origin)
}

type key struct{}

// With returns a context that carries by.
func With(ctx context.Context, by By) context.Context { return context.WithValue(ctx, key{}, by) }

// From returns the actor of a context, the server if it has none.
func From(ctx context.Context) By {
	if by, ok := ctx.Value(key{}).(By); ok {
		return by
	}
	return By{Actor: ActorServer}
}
