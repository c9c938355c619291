package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors to test for with [errors.Is]. The types of this package that wrap them carry the details.
var (
	// ErrUnavailable means that this gateway does not advertise the operation. Nothing was sent.
	// See [UnavailableError].
	ErrUnavailable = errors.New("gateway: operation is not offered by this gateway")
	// ErrSignIn means that the gateway rejected the credential, or that it needs one and the client
	// has none. Sign in again, or enter another key.
	ErrSignIn = errors.New("gateway: sign-in required")
	// ErrUnreachable means that a request failed below HTTP. Whether the gateway processed it is
	// unknown unless the method says so.
	ErrUnreachable = errors.New("gateway: server cannot be reached")
	// ErrNoRoute means that no address of the profile can be used. See [NoRouteError].
	ErrNoRoute = errors.New("gateway: no address of the gateway can be used")
	// ErrIdentity means that the host that answered is not the gateway of the profile.
	ErrIdentity = errors.New("gateway: another gateway answered")
	// ErrTooLarge means that a request, response or event exceeds its size limit.
	ErrTooLarge = errors.New("gateway: size limit exceeded")
	// ErrStreamBroken means that a stream ended without the outcome of the turn. [Turn.Reconcile]
	// looks it up.
	ErrStreamBroken = errors.New("gateway: stream ended before the turn did")
	// ErrApprovalClosed means that the approval was answered before, or that the gateway no longer
	// waits for it.
	ErrApprovalClosed = errors.New("gateway: approval is no longer open")
	// ErrLoading means that the gateway has not loaded the code for turns yet. It stored nothing of
	// the turn: start the turn again after a few seconds, with another idempotency key.
	ErrLoading = errors.New("gateway: gateway is still loading")
	// ErrClosed means that the client or the turn is closed.
	ErrClosed = errors.New("gateway: closed")
)

// prefix starts the text of every error of this package.
const prefix = "gateway: "

// withoutPrefix returns the text of err for use inside another text of this package.
func withoutPrefix(err error) string { return strings.TrimPrefix(err.Error(), prefix) }

// UnavailableError names an operation that the gateway does not advertise. It is [ErrUnavailable].
type UnavailableError struct {
	Operation string // its name in the endpoints of GET /v1/capabilities, such as session_fork
}

// Error names the operation.
func (e *UnavailableError) Error() string {
	return prefix + "this gateway does not offer the operation " + e.Operation
}

// Is reports whether target is ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Error is a refusal by the gateway: an HTTP response other than 2xx, or an error event of a
// stream. Status 401 and 403 are [ErrSignIn].
type Error struct {
	Status     int           // HTTP status; 0 for an error event
	Code       string        // such as session_not_found; can be empty (doc/hermes/api.md §1.1 lists them)
	Message    string        // the gateway's words, without addresses and secrets; can be empty
	RetryAfter time.Duration // how long to wait before another try; 0 if the gateway does not say
}

// Error returns the gateway's words, or the status if it sent none. It holds no address and no
// secret.
func (e *Error) Error() string {
	switch {
	case e.Message != "" && e.Code != "":
		return fmt.Sprintf(prefix+"request refused: %s (%s)", e.Message, e.Code)
	case e.Message != "":
		return prefix + "request refused: " + e.Message
	default:
		return fmt.Sprintf(prefix+"request refused with status %d", e.Status)
	}
}

// Is reports whether e is [ErrSignIn] (status 401 or 403) or [ErrLoading].
//
// A gateway of 0.22 answers some seconds before its Python modules are loaded, and then reports
// Python's own error. Either two threads import the same modules, or two threads parse source at
// once (CPython gh-106905, in all of 3.11). Hermes has no code for it, so ErrLoading is told by
// Python's words.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrSignIn:
		return e.Status == 401 || e.Status == 403
	case ErrLoading:
		return strings.Contains(e.Message, "cannot import name") && strings.Contains(e.Message, "partially initialized module") ||
			strings.Contains(e.Message, "AST constructor recursion depth mismatch")
	}
	return false
}
