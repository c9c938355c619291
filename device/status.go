package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
)

// State is the state of the connection.
type State int

// The states of the connection. NoAccess and Replaced last until [Device.Reconnect]; Closed is
// final.
const (
	Connecting State = iota // an attempt is under way
	Online                  // the server sent ready
	Waiting                 // the next attempt is at Status.Until
	NoAccess                // the server rejects this device: Status.Err is a *NoAccessError
	Replaced                // a newer connection of the same device took over (close code 4409)
	Closed                  // Close was called
)

// String returns the name of the state in lower case.
func (s State) String() string {
	names := [...]string{"connecting", "online", "waiting", "no access", "replaced", "closed"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return names[s]
}

// The errors of a device. The package comment lists the typed ones.
var (
	// ErrClosed means that Close was called.
	ErrClosed = errors.New("device: closed")
	// ErrLinkLost means that the connection broke before the answer came. The server may or may not
	// have acted.
	ErrLinkLost = errors.New("device: the connection broke before the answer came")
	// ErrUnsupported means that the agent does not support this now, according to its capabilities.
	// Nothing was sent.
	ErrUnsupported = errors.New("device: the agent does not offer this now")
	// ErrReplaced means that a newer connection of the same device took over.
	ErrReplaced = errors.New("device: a newer connection of this device took over")
	// ErrEventsInUse means that another Events loop or NextEvent is running. A device has one
	// reader at a time.
	ErrEventsInUse = errors.New("device: another Events loop is running")
)

// NoAccessError says why the device stopped trying (doc/protocol.md §1): the server closed with
// 1008, or rejected the upgrade with 400, 401 or 403, or with 404 where there never was a server at
// the address.
type NoAccessError struct {
	Code    frame.Code // auth_failed, forbidden or bad_frame; empty where the server gave none
	Status  int        // HTTP status of a rejected upgrade, otherwise 0
	Message string     // one sentence for the user
}

// Error returns the message with its code or status.
func (e *NoAccessError) Error() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("device: no access (HTTP %d): %s", e.Status, e.Message)
	case e.Code != "":
		return fmt.Sprintf("device: no access (%s): %s", e.Code, e.Message)
	}
	return "device: no access: " + e.Message
}

// Status is a snapshot of everything that a connection line shows. Session to Capabilities keep
// their last known values while the device is not Online.
type Status struct {
	State State
	Until time.Time // Waiting: the time of the next attempt
	Err   error     // why the last connection or attempt ended; nil while Online
	Since time.Time // when State began

	Session      string
	Server       string // name and version
	AvatarURL    string
	Capabilities frame.Capabilities
	Agent        frame.AgentState // empty before the first ready
	Approved     bool
	Pairing      string // the server's message to a device without approval; it holds the approval code

	// AnswersAt is when this device may answer cards, by the local clock: a new device waits for a
	// while (doc/protocol.md §8). Zero means that it need not wait; see also Capabilities.Prompt.
	AnswersAt time.Time

	Unconfirmed int // messages, files and answers without an ack
}

// answersAt returns Status.AnswersAt for capabilities that have just come. It counts seconds,
// because the two clocks may differ.
func answersAt(c frame.Capabilities, now time.Time) time.Time {
	if c.AnswersIn <= 0 {
		return time.Time{}
	}
	return now.Add(seconds(c.AnswersIn))
}

// board holds the status. It tells the Events loop and waiting calls about each change.
type board struct {
	in *inbox

	mu      sync.Mutex
	status  Status
	changed chan struct{} // closed at each change
}

func newBoard(in *inbox) *board {
	return &board{in: in, status: Status{Since: time.Now()}, changed: make(chan struct{})}
}

func (b *board) get() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.copyLocked()
}

func (b *board) copyLocked() Status {
	s := b.status
	s.Capabilities.Call = slices.Clone(s.Capabilities.Call)
	return s
}

// update applies a change.
func (b *board) update(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updateLocked(change)
}

func (b *board) updateLocked(change func(*Status)) {
	before := b.status.State
	change(&b.status)
	if b.status.State != before {
		b.status.Since = time.Now()
	}
	if b.status.State != Waiting {
		b.status.Until = time.Time{}
	}
	close(b.changed)
	b.changed = make(chan struct{})
	b.in.push(queued{ev: StatusChanged{b.copyLocked()}, key: "status"})
}

// retry turns a state that waits for a new attempt into Connecting, at once, so that WaitOnline
// does not see the old end.
func (b *board) retry() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch b.status.State {
	case Waiting, NoAccess, Replaced:
		b.updateLocked(func(s *Status) { s.State = Connecting })
		return true
	}
	return false
}

// offers reports whether the agent supports something, or may: before the first ready nothing is
// known.
func (b *board) offers(can func(*frame.Capabilities) bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status.Agent == "" || can(&b.status.Capabilities)
}

func (b *board) waitOnline(ctx context.Context) error {
	for {
		b.mu.Lock()
		s, changed := b.status, b.changed
		b.mu.Unlock()
		switch s.State {
		case Online:
			return nil
		case NoAccess, Replaced:
			return s.Err
		case Closed:
			return ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if s.Err != nil {
				return fmt.Errorf("device: not online: %w; last attempt: %w", ctx.Err(), s.Err)
			}
			return fmt.Errorf("device: not online: %w", ctx.Err())
		}
	}
}
