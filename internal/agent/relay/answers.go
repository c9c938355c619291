package relay

import (
	"errors"
	"log/slog"
	"time"

	"hermes-mobile/internal/agent"
)

// answerWithin is how long an op may wait for its answer. A gateway waits 30 s (doc/hermes/relay.md §4).
const answerWithin = 20 * time.Second

// answers gives each op of a gateway its result, exactly once. The lock of the gateway must be held.
type answers struct {
	now     func() time.Time
	limited *rateLog
	wire    *wire
	reports *reports

	waiting map[string]time.Time // since when an op is worked on, by requestId, of this connection
	held    []string             // requestIds of interim ops, which are answered when the hub has caught up
}

// begin notes an op that must be answered. ok is false if it must be ignored: it cannot be answered,
// is worked on already, or there are too many.
func (a *answers) begin(requestID string) (ok bool) {
	if requestID == "" {
		return false
	}
	if _, twice := a.waiting[requestID]; twice {
		return false
	}
	if len(a.waiting) >= 2*hardPending {
		a.wire.overload("unanswered ops")
		return false
	}
	a.waiting[requestID] = a.now()
	return true
}

// give sends the result of an op, if the gateway still waits for it.
func (a *answers) give(requestID string, r result) {
	if _, ok := a.waiting[requestID]; !ok || a.wire.link == nil {
		return
	}
	delete(a.waiting, requestID)
	a.wire.send(encodeResult(requestID, r))
}

// accept answers an op with success.
func (a *answers) accept(act *action, messageID string) {
	a.give(act.requestID, result{Success: true, MessageID: messageID})
}

// fail answers an op that is never shown.
func (a *answers) fail(act *action, text string) { a.give(act.requestID, result{Error: text}) }

// interim answers an op that stores nothing: at once, before any other work (doc/hermes/relay.md §7),
// or, while the hub lags, when it has caught up.
func (a *answers) interim(act *action, messageID string) {
	if a.reports.lagging() && len(a.held) < hardPending {
		a.held = append(a.held, act.requestID)
		return
	}
	a.accept(act, messageID)
}

// stored returns the function that answers an op when its events are stored.
func (a *answers) stored(act *action, messageID string) func(error) {
	return func(err error) {
		switch {
		case err == nil:
			a.accept(act, messageID)
		case errors.Is(err, agent.ErrNoDevice):
			a.fail(act, "no such device")
		default:
			a.limited.write(slog.LevelError, "cannot store an op of the gateway", "op", act.Op, "err", err)
			a.fail(act, "cannot be stored now")
		}
	}
}

// release answers the interim ops that were held back, if the hub has caught up.
func (a *answers) release() {
	if a.reports.lagging() || len(a.held) == 0 {
		return
	}
	for _, id := range a.held {
		a.give(id, result{Success: true})
	}
	a.held = nil
}

// expire fails the ops that have waited for too long.
func (a *answers) expire(now time.Time) {
	for id, since := range a.waiting {
		if now.Sub(since) > answerWithin {
			a.give(id, result{Error: "the connector is busy, try again"})
		}
	}
}

// reset forgets the ops of a connection that is over.
func (a *answers) reset() {
	clear(a.waiting)
	a.held = nil
}
