package media

import (
	"time"

	"hermes-mobile/frame"
)

// Limits bound the uploads of one device (doc/protocol.md §5). A zero field takes its value from
// [DefaultLimits].
type Limits struct {
	// MaxFile is the largest file in bytes, and the maximum of all unfinished series of a device
	// together. The error for more is too_big.
	MaxFile int64
	// MaxUploads is how many series of a device may be unfinished at once.
	MaxUploads int
	// MaxParts is how many parts a series may have.
	MaxParts int
	// MinPart is the smallest part in bytes. Only the last part may be smaller.
	MinPart int
	// SpoolAbove is how many bytes of unfinished series a device may have in memory. A series that
	// would exceed it moves to a temporary file.
	SpoolAbove int64
	// SpoolAllAbove is the same for all devices of a [Store] together, so the memory of uploads
	// doesn't grow with the number of devices.
	SpoolAllAbove int64
	// Idle is how long a series may wait for its next part.
	Idle time.Duration
}

// MaxAudio is the largest voice message in bytes (doc/protocol.md §3).
const MaxAudio = frame.MaxAudio

// DefaultLimits returns the limits of doc/protocol.md §5 that package frame announces to devices,
// and those that devices don't see: 1 MiB in memory, 8 MiB for all devices, and 10 minutes.
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

// Refusal is an error for the peer: it violated the protocol. The connection and all other series
// go on.
type Refusal struct {
	// TooBig selects the code: too_big if set, else bad_frame (doc/protocol.md §10).
	TooBig bool
	// Reason is one plain sentence for the developer of the app.
	Reason string
}

// Error returns the code and the reason.
func (r *Refusal) Error() string {
	if r.TooBig {
		return "too_big: " + r.Reason
	}
	return "bad_frame: " + r.Reason
}

func badFrame(reason string) *Refusal { return &Refusal{Reason: reason} }

func tooBig(reason string) *Refusal { return &Refusal{TooBig: true, Reason: reason} }
