package relay

import "time"

const (
	// stoodStill is how long the answer to a ping takes if the event loop of the gateway stood still.
	stoodStill = 500 * time.Millisecond
	pingAgain  = time.Second // the last ping may have gone to a connection that is over
)

// rounds counts turns of the gateway's event loop: a pong that answers a ping is at least one. The
// lock of the gateway must be held.
type rounds struct {
	now  func() time.Time
	wire *wire

	count      int64     // of pongs
	pinged     time.Time // when we last did, beside the heartbeat
	unanswered time.Time // since when no pong has come; zero: none is due
}

func (r *rounds) ping() {
	if r.wire.link == nil {
		return
	}
	r.pinged = r.now()
	if r.unanswered.IsZero() {
		r.unanswered = r.pinged
	}
	r.wire.link.conn.Ping()
}

// pong counts a pong and reports whether the event loop stood still before it.
func (r *rounds) pong() (stood bool) {
	r.count++
	stood = !r.unanswered.IsZero() && r.now().Sub(r.unanswered) > stoodStill
	r.unanswered = time.Time{}
	return stood
}

// reset forgets the ping of a connection that is over.
func (r *rounds) reset() { r.unanswered = time.Time{} }

const (
	// restSession is how long a gateway holds a session after its turn, where it is quick. It was
	// seen to take more than 0.6 s under load.
	restSession = 2 * time.Second
	// restPongs is for a gateway whose event loop stands still, on a small machine or because of other
	// turns. It needs longer by the clock, but only some ten rounds of that loop.
	restPongs = 20
	restMax   = 30 * time.Second // no stall is longer

	// settleMax is how long a text waits for these rounds. An event loop that stood still for 5 s was
	// seen on a busy machine: the text then stayed unread until the next one.
	settleMax = restMax
)

// rest is the time after a turn in which the gateway still holds the session of its conversation. A
// command that comes then stalls the gateway for 30 s or more, for everybody (doc/hermes/relay.md
// §7): an older one for its answer, a newer one for the card that asks whether the command is meant.
// So a command waits while the gateway rests.
//
// Some gateways add a text to the running turn. A text that arrives during the rest then joins a turn
// that has ended, and the model doesn't read it before the next turn. So such a text waits for some
// rounds, too.
type rest struct {
	rounds *rounds
	ended  time.Time // when the last turn was over
	from   time.Time // then, or when the event loop was last seen to stand still
	count  int64     // of rounds then
}

// begin begins the rest after a turn.
func (r *rest) begin(now time.Time) { r.ended, r.from, r.count = now, now, r.rounds.count }

// lagging reports whether too few rounds have passed since the turn ended.
func (r *rest) lagging() bool { return r.rounds.count-r.count < restPongs }

// holds reports whether an event has to wait.
func (r *rest) holds(command, steers bool) bool {
	now := r.rounds.now()
	if command && (now.Sub(r.from) < restSession || now.Sub(r.ended) < restMax && r.lagging()) {
		return true
	}
	return steers && now.Sub(r.ended) < settleMax && r.lagging()
}

// stood begins the rest again because the event loop stood still: an older gateway had none of the
// time that has passed.
func (r *rest) stood() {
	if now := r.rounds.now(); now.Sub(r.ended) < restMax {
		r.from = now
	}
}
