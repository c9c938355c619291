package media

import (
	"time"

	"hermes-mobile/frame"
)

// Limits bound what the uploads of one device may cost, see protocol §5. A
// field that is zero stands for its value in [DefaultLimits].
type Limits struct {
	// MaxFile is the largest file in bytes, and also the cap for the bytes of
	// all unfinished series of a device together. Above it: too big.
	MaxFile int64
	// MaxUploads is how many series of a device may be unfinished at a time.
	MaxUploads int
	// MaxParts is how many parts a series may have.
	MaxParts int
	// MinPart is the smallest part in bytes; only the last one may be smaller.
	MinPart int
	// SpoolAbove is how many bytes of unfinished series a device may hold in
	// memory. A series that would go over it moves to a temporary file.
	SpoolAbove int64
	// SpoolAllAbove is the same for all devices of a [Store] together, so that
	// the memory of uploads does not grow with their number.
	SpoolAllAbove int64
	// Idle is how long a series may wait for its next part.
	Idle time.Duration
}

// MaxAudio is the largest voice message in bytes (protocol §3).
const MaxAudio = frame.MaxAudio

// DefaultLimits returns the limits of protocol §5, which are announced to
// devices: they stand in package frame. What they do not see is 1 MiB in memory
// and 8 MiB of all devices, and 10 minutes.
func DefaultLimits() Limits {
	return Limits{
		MaxFile:       frame.MaxMedia,
		MaxUploads:    frame.MaxUploads,
		MaxParts:      frame.MaxParts,
		MinPart:       frame.MinChunk,
		SpoolAbove:    1 << 20,
		SpoolAllAbove: 8 << 20,
		Idle:          10 * time.Minute,
	}
}

// filled returns l with the defaults in place of zeros.
func (l Limits) filled() Limits {
	d := DefaultLimits()
	if l.MaxFile == 0 {
		l.MaxFile = d.MaxFile
	}
	if l.MaxUploads == 0 {
		l.MaxUploads = d.MaxUploads
	}
	if l.MaxParts == 0 {
		l.MaxParts = d.MaxParts
	}
	if l.MinPart == 0 {
		l.MinPart = d.MinPart
	}
	if l.SpoolAbove == 0 {
		l.SpoolAbove = d.SpoolAbove
	}
	if l.SpoolAllAbove == 0 {
		l.SpoolAllAbove = d.SpoolAllAbove
	}
	if l.Idle == 0 {
		l.Idle = d.Idle
	}
	return l
}

// Refusal is an error for the peer: what it sent is against the protocol. The
// connection and all other series go on.
type Refusal struct {
	// TooBig tells the code: too_big when set, else bad_frame (protocol §10).
	TooBig bool
	// Reason is one plain sentence for the maker of the app.
	Reason string
}

// Error returns the reason with the code before it.
func (r *Refusal) Error() string {
	if r.TooBig {
		return "too_big: " + r.Reason
	}
	return "bad_frame: " + r.Reason
}

func badFrame(reason string) *Refusal { return &Refusal{Reason: reason} }

func tooBig(reason string) *Refusal { return &Refusal{TooBig: true, Reason: reason} }
