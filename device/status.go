package device

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hermes-mobile/frame"
)

// State is how the connection stands.
type State int

// The states of a connection. NoAccess and Replaced last until [Device.Reconnect]; Closed is the end.
const (
	Connecting State = iota // an attempt is under way
	Online                  // ready came
	Waiting                 // the next attempt is at Status.Until
	NoAccess                // the server refuses this device: Status.Err is a *NoAccessError
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

// Errors of a device. Others are typed: see the package comment.
var (
	// ErrClosed: Close was called.
	ErrClosed = errors.New("device: closed")
	// ErrLinkLost: the connection broke before the answer came; whether the server did it is not known.
	ErrLinkLost = errors.New("device: the connection broke before the answer came")
	// ErrUnsupported: the agent cannot do this now, by its capabilities. Nothing was sent.
	ErrUnsupported = errors.New("device: the agent does not offer this now")
	// ErrReplaced: a newer connection of the same device took over.
	ErrReplaced = errors.New("device: a newer connection of this device took over")
)

// NoAccessError says why the device stopped trying (§1: close code 1008, or an upgrade refused with 400, 401, 403, or with
// 404 where there never was a server at the address).
type NoAccessError struct {
	Code    frame.Code // auth_failed, forbidden or bad_frame; empty where the server gave none
	Status  int        // HTTP status of a refused upgrade, else 0
	Message string     // one sentence for the person
}

// Error returns the sentence with its code.
func (e *NoAccessError) Error() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("device: no access (HTTP %d): %s", e.Status, e.Message)
	case e.Code != "":
		return fmt.Sprintf("device: no access (%s): %s", e.Code, e.Message)
	}
	return "device: no access: " + e.Message
}

// Status is a snapshot of everything a connection line shows. Session to Capabilities keep the last known values while
// the device is not Online.
type Status struct {
	State State
	Until time.Time // Waiting: when the next attempt is made
	Err   error     // why the last connection or attempt ended; nil while Online
	Since time.Time // when State began

	Session      string
	Server       string // name and version
	AvatarURL    string
	Capabilities frame.Capabilities
	Agent        frame.AgentState // empty before the first ready
	Approved     bool
	Pairing      string // what the server said to a device that is not approved: holds the pairing code

	// AnswersAt is when this device may answer cards, by this machine's clock: a new device waits for a while (§8). Zero: it
	// does not wait, see Capabilities.Prompt.
	AnswersAt time.Time

	Unconfirmed int // messages, files and answers without receipt
}

// answersAt is Status.AnswersAt for capabilities that came just now: the two clocks may differ, seconds do not.
func answersAt(c frame.Capabilities, now time.Time) time.Time {
	if c.AnswersIn <= 0 {
		return time.Time{}
	}
	return now.Add(seconds(c.AnswersIn))
}

// Status returns how things stand now. Each change also comes as a [StatusChanged].
func (d *Device) Status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.statusLocked()
}

func (d *Device) statusLocked() Status {
	s := d.status
	s.Capabilities.Call = slices.Clone(s.Capabilities.Call)
	s.Unconfirmed = len(d.out)
	return s
}

// changeLocked applies a change of the status and tells the loop and those who wait.
func (d *Device) changeLocked(change func(s *Status)) {
	before := d.status.State
	change(&d.status)
	if d.status.State != before {
		d.status.Since = time.Now()
	}
	close(d.changed)
	d.changed = make(chan struct{})
	d.in.push(queued{ev: StatusChanged{d.statusLocked()}, key: "status"})
}

// WaitOnline returns when the device is Online: nil at once if it is. It returns the *NoAccessError or ErrReplaced that
// ended the attempts, ErrClosed, or the error of ctx, together with why the last attempt failed, such as [ErrFingerprint].
func (d *Device) WaitOnline(ctx context.Context) error {
	for {
		d.mu.Lock()
		s, changed := d.status, d.changed
		d.mu.Unlock()
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
				return fmt.Errorf("device: not online: %w; the last attempt failed: %w", ctx.Err(), s.Err)
			}
			return fmt.Errorf("device: not online: %w", ctx.Err())
		}
	}
}
