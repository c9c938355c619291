package relay

import (
	"errors"

	"hermes-mobile/internal/agent"
)

const (
	softPending = 256      // unfinished stores above which edits are left out and answered late
	hardPending = 2048     // above which the connection is closed with 1013
	hardBytes   = 64 << 20 // likewise, in bytes of text
)

// reports tells the hub what happens in the conversations of one gateway, within a memory budget.
// The lock of the gateway must be held.
type reports struct {
	seq  *sequencer
	host func() agent.Host // nil before the agent runs

	overload func(of string)     // called when the budget is exceeded; of names what exceeds it
	gone     func(device string) // called when the hub does not know a device
	drained  func()              // called when a store has finished

	pending      int // unfinished stores
	pendingBytes int
	openBytes    int // of messages that are not final
}

// post gives events to a device.
func (r *reports) post(device string, events ...agent.Event) {
	r.seq.later(func() { r.host().Post(device, nil, events...) })
}

// store gives events to a device and calls then, locked, with the outcome. size is how many bytes of
// the budget they take until then.
func (r *reports) store(device string, size int, then func(err error), events ...agent.Event) {
	r.pending++
	r.pendingBytes += size
	r.seq.later(func() {
		r.host().Post(device, func(err error) {
			r.seq.do(func() {
				r.pending--
				r.pendingBytes -= size
				if errors.Is(err, agent.ErrNoDevice) {
					r.gone(device)
				}
				then(err)
				r.drained()
			})
		}, events...)
	})
	if r.pending > hardPending || r.pendingBytes > hardBytes {
		r.overload("stores")
	}
}

// reserve takes n bytes of the budget for open messages, or gives them back where n is negative.
func (r *reports) reserve(n int) {
	if r.openBytes += n; n > 0 && r.openBytes > hardBytes {
		r.overload("open messages")
	}
}

// lagging reports whether the hub is behind: then edits of messages are left out.
func (r *reports) lagging() bool { return r.pending > softPending }

// changed tells the hub that the status of devices may have changed.
func (r *reports) changed() {
	r.seq.later(func() {
		if h := r.host(); h != nil {
			h.Changed()
		}
	})
}
