package access

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
)

// PairingCode says what a pairing code is for. A code belongs to a user. The owner names an
// existing user, or nobody: then the device that redeems the code creates a new user. So whoever
// gets hold of a code can never act as somebody else.
type PairingCode struct {
	User    string        // that the device belongs to; empty: a new user
	Trusted bool          // the device may answer cards at once
	Life    time.Duration // of the device's own token; 0: it never expires
}

// Reasons for which no pairing code is made.
var (
	ErrBadUser = fmt.Errorf("a user id is 1 to %d characters of A-Z a-z 0-9 . _ - : @", frame.MaxID)
	// ErrUnapprovedDevices is returned because a code would also let in the devices that wait for
	// approval.
	ErrUnapprovedDevices = errors.New("the user is not approved, and unapproved devices wait under that name: approve the user with hermes-mobile pairing approve, or revoke these devices")
)

// Check returns [ErrBadUser] if the code names a user with an invalid id.
func (c PairingCode) Check() error {
	if c.User != "" && !frame.ValidID(c.User) {
		return fmt.Errorf("%q: %w", c.User, ErrBadUser)
	}
	return nil
}

// Describe returns what the code is for, as the audit log shows it.
func (c PairingCode) Describe() string {
	text := "for a new user"
	if c.User != "" {
		text = "for user " + c.User
	}
	if c.Trusted {
		text += ", trusted"
	}
	if c.Life > 0 {
		text += ", token for " + FormatLife(c.Life)
	}
	return text
}

// FormatLife returns the lifetime of a token in the largest unit that fits.
func FormatLife(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		if n := d / unit.of; n > 0 && d%unit.of == 0 {
			if n == 1 {
				return "1 " + unit.name
			}
			return fmt.Sprintf("%d %ss", n, unit.name)
		}
	}
	return d.String()
}

// CodeName returns the name of a pairing code by the hash of its secret. It stands for the code
// where that must not be shown.
func CodeName(hash string) string { return hash[:16] }

// Paired is a device that has redeemed a pairing code.
type Paired struct {
	Code string    `json:"code"` // name of the code, see CodeName
	ID   string    `json:"id"`   // of the device
	Name string    `json:"name"`
	User string    `json:"user"`
	At   time.Time `json:"at"`
}

// maxPaired bounds the redeemed codes that are remembered, pairedTTL for how long.
const (
	maxPaired = 64
	pairedTTL = 15 * time.Minute
)

// Redeemed remembers the devices that have redeemed a code lately, because the code may still be on
// a screen. The zero value is ready to use. Safe for concurrent use.
type Redeemed struct {
	mu   sync.Mutex
	list []Paired
}

// Add remembers a device.
func (r *Redeemed) Add(p Paired) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(o Paired) bool { return o.Code == p.Code || time.Since(o.At) > pairedTTL })
	if r.list = append(r.list, p); len(r.list) > maxPaired {
		r.list = r.list[1:]
	}
}

// List returns the devices that have redeemed a code within the last 15 minutes, oldest first.
func (r *Redeemed) List() []Paired {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(o Paired) bool { return time.Since(o.At) > pairedTTL })
	return append([]Paired{}, r.list...)
}

// Approvals remembers the approvals that this process wrote into the pairing files. [Pairing.Watch]
// reports them as if another process had written them. The zero value is ready to use. Safe for
// concurrent use.
type Approvals struct {
	mu   sync.Mutex // held while an approval is written, so that its report does not come first
	mine map[string]time.Time
}

// reportTimeout is how long after it was written an approval may still be reported.
const reportTimeout = 10 * time.Second

// Write runs a function that writes an approval, and remembers it.
func (a *Approvals) Write(write func() (User, error)) (User, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	user, err := write()
	if err == nil {
		if a.mine == nil {
			a.mine = map[string]time.Time{}
		}
		a.mine[user.UserID] = time.Now()
	}
	return user, err
}

// Own reports whether this process wrote the approval of a user that Watch reports. It says so
// once.
func (a *Approvals) Own(user string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, own := a.mine[user]
	delete(a.mine, user)
	for other, at := range a.mine {
		if time.Since(at) > reportTimeout {
			delete(a.mine, other)
		}
	}
	return own && time.Since(at) <= reportTimeout
}
