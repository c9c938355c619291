package gateway

import (
	"fmt"
	"time"
)

// Way is how a turn is run.
type TurnMode string

// The ways, best first.
const (
	// WayRun is POST /v1/runs: it goes on without a reader, can be stopped and asks for approvals on every version.
	ModeRun TurnMode = "run"
	// WaySession is POST /api/sessions/{id}/chat/stream. It is the only one that takes images into a session.
	ModeSession TurnMode = "session"
	// WayResponses is POST /v1/responses: a chain of responses, and no session.
	ModeResponses TurnMode = "responses"
	// WayCompletions is POST /v1/chat/completions: each turn brings its history, and there is no session.
	ModeCompletions TurnMode = "completions"
)

// Lease is what a turn is bound to. It is made before the call and never changes; a turn gets another lease when its run
// has an id, and when it is followed over another route. Marshalled to JSON it is enough to come back to the turn after
// the program was started anew: [Client.ResumeTurn]. It holds no secret and no text.
type TurnHandle struct {
	Mode           TurnMode  `json:"way"`
	URL            string    `json:"url"` // of the gateway, as the route has it
	Route          RouteKind `json:"route"`
	Generation     uint64    `json:"generation"` // of the route
	Method         string    `json:"method"`
	Endpoint       string    `json:"endpoint"` // the escaped path of the call that starts the turn
	SessionID      string    `json:"session,omitempty"`
	RunID          string    `json:"run,omitempty"` // empty until the gateway said it
	IdempotencyKey string    `json:"key"`           // of idempotency; sent where the gateway advertises it
	ToolEvents     bool      `json:"tool_events"`
	Reasoning      bool      `json:"reasoning,omitempty"` // what the model thinks is told of
	Started        time.Time `json:"started"`

	IdleTimeout    time.Duration `json:"idle"`     // silence after which a stream is given up
	OutcomeTimeout time.Duration `json:"patience"` // how long an outcome is looked for where nothing moves

	// What the transcript was before the turn, to know its rows from others.
	After              int64  `json:"after"`  // id of the last row; -1 where that is not known
	Digest             string `json:"digest"` // of the text
	Images             int    `json:"images,omitempty"`
	PreviousResponseID string `json:"chain,omitempty"` // of WayResponses: the response before
}

// String says what the lease is for, without any host.
func (l TurnHandle) String() string {
	return fmt.Sprintf("%s turn of session %q by the %s route (generation %d)", l.Mode, l.SessionID, l.Route, l.Generation)
}

// GoString is String, for %#v.
func (l TurnHandle) GoString() string { return l.String() }

// bind is the lease on another route of the same gateway.
func (l TurnHandle) bind(cn *conn) TurnHandle {
	l.URL, l.Route, l.Generation = cn.base.String(), cn.route.Kind, cn.route.Generation
	return l
}
