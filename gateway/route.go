package gateway

import "time"

// RouteKind tells which of the two addresses of a profile a route uses.
type RouteKind string

// The kinds of routes.
const (
	Local  RouteKind = "local"
	Remote RouteKind = "remote"
)

// Route is the way a client uses now.
type Route struct {
	Kind       RouteKind
	Since      time.Time
	Reason     string // why this one, in a plain sentence without any host
	Generation uint64 // grows with each choice, so a later choice is never taken for an earlier one
}
