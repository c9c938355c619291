package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that callers test with errors.Is. Those that come with facts are wrapped by a type of this file.
var (
	// ErrUnavailable: this gateway does not advertise the operation, so it is not tried. See [UnavailableError].
	ErrUnavailable = errors.New("not offered by this gateway")
	// ErrSignIn: the gateway refused the credential, or there is none where one is needed. Nothing is repeated by itself.
	ErrSignIn = errors.New("sign in again")
	// ErrUnreachable: a request failed below HTTP. Whether it was taken is not known unless the call says so.
	ErrUnreachable = errors.New("the gateway cannot be reached")
	// ErrNoRoute: neither address could be used. See [NoRouteError].
	ErrNoRoute = errors.New("no usable route to the gateway")
	// ErrIdentity: a host answered that is not the gateway of the profile.
	ErrIdentity = errors.New("another gateway answered")
	// ErrTooBig: an answer or event was over its limit.
	ErrTooBig = errors.New("more than the limit")
	// ErrCut: a stream ended without saying how the turn ended. What became of the turn is found out by [Turn.Reconcile].
	ErrCut = errors.New("the stream was cut")
	// ErrLate: the approval was answered before, or nobody waits for the answer any more.
	ErrLate = errors.New("the approval is no longer open")
	// ErrLoading: the gateway answers already and has not loaded yet what a turn needs. Nothing of the turn is stored: start it again,
	// with another key.
	ErrLoading = errors.New("the gateway is still loading")
	// ErrClosed: the client or turn was closed.
	ErrClosed = errors.New("closed")
)

// UnavailableError names the operation that a gateway does not advertise. It is ErrUnavailable.
type UnavailableError struct {
	Operation string // the name in endpoints of GET /v1/capabilities, such as session_fork
}

func (e *UnavailableError) Error() string {
	return "this gateway does not offer " + e.Operation
}

// Is makes it ErrUnavailable.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

// Error is a refusal by the gateway: an answer of HTTP other than 2xx, or an error event of a stream. Its text is for
// people and holds what the gateway said, without the address and without any secret. Status 401 and 403 are ErrSignIn.
type Error struct {
	Status     int    // of HTTP; 0 for an error event
	Code       string // such as session_not_found; may be empty (api-facts §1.1 lists them)
	Message    string
	RetryAfter time.Duration // 0: not said
}

func (e *Error) Error() string {
	switch {
	case e.Message != "" && e.Code != "":
		return fmt.Sprintf("the gateway refused: %s (%s)", e.Message, e.Code)
	case e.Message != "":
		return "the gateway refused: " + e.Message
	default:
		return fmt.Sprintf("the gateway refused with status %d", e.Status)
	}
}

// Is makes 401 and 403 ErrSignIn, and what comes of Python modules that are half loaded ErrLoading: 0.22 answers seconds before its
// modules are there. The words are Python's own, where two threads import the same modules, and where two threads read source at once
// (gh-106905, in all of 3.11).
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
