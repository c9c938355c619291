package gateway

import (
	"fmt"
	"time"
)

// TurnMode is the API by which a turn runs.
type TurnMode string

// The modes, in order of preference.
const (
	// ModeRun is POST /v1/runs. The turn continues without a reader, can be stopped, and asks for
	// approvals on every version.
	ModeRun TurnMode = "run"
	// ModeSession is POST /api/sessions/{id}/chat/stream. It is the only mode that accepts images
	// in a session.
	ModeSession TurnMode = "session"
	// ModeResponses is POST /v1/responses: a chain of responses without a session.
	ModeResponses TurnMode = "responses"
	// ModeCompletions is POST /v1/chat/completions: no session, each turn sends its history.
	ModeCompletions TurnMode = "completions"
)

// TurnHandle identifies a turn across restarts of the program: store it as JSON, and pass it to
// [Client.ResumeTurn]. It contains no secret and no text of the conversation.
//
// A handle never changes. The turn gets a new one when its run has an ID, and when it moves to
// another route: see [TurnRequest.OnHandle]. The JSON names are a stored form and stay stable.
type TurnHandle struct {
	Mode           TurnMode  `json:"way"`
	URL            string    `json:"url"` // of the gateway, as the route has it
	Route          RouteKind `json:"route"`
	Generation     uint64    `json:"generation"` // of the route
	Method         string    `json:"method"`
	Endpoint       string    `json:"endpoint"` // escaped path of the call that starts the turn
	SessionID      string    `json:"session,omitempty"`
	RunID          string    `json:"run,omitempty"` // empty until the gateway sends it
	IdempotencyKey string    `json:"key"`           // sent if the gateway supports it
	ToolEvents     bool      `json:"tool_events"`
	Reasoning      bool      `json:"reasoning,omitempty"` // events with the model's reasoning are emitted
	Started        time.Time `json:"started"`

	IdleTimeout    time.Duration `json:"idle"`     // silence after which a stream counts as broken
	OutcomeTimeout time.Duration `json:"patience"` // how long the outcome is searched while nothing changes

	// The transcript before the turn, to tell the turn's rows from others.
	After              int64  `json:"after"`  // ID of the last row; -1 if unknown
	Digest             string `json:"digest"` // of the text
	Images             int    `json:"images,omitempty"`
	PreviousResponseID string `json:"chain,omitempty"` // for ModeResponses
}

// String describes the handle without any host.
func (h TurnHandle) String() string {
	return fmt.Sprintf("%s turn of session %q by the %s route (generation %d)", h.Mode, h.SessionID, h.Route, h.Generation)
}

// GoString returns [TurnHandle.String] for %#v.
func (h TurnHandle) GoString() string { return h.String() }

// bind returns the handle on another route of the same gateway.
func (h TurnHandle) bind(cn *conn) TurnHandle {
	h.URL, h.Route, h.Generation = cn.base.String(), cn.route.Kind, cn.route.Generation
	return h
}
