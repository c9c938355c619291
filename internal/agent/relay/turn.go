package relay

import (
	"slices"
	"time"

	"hermes-mobile/internal/agent"
)

// lingerMark is how long a turn goes on after the second of the marks that end it.
const lingerMark = 250 * time.Millisecond

// turn is what the gateway does for one input of a user.
type turn struct {
	n       int64  // of the input
	inputID string // the app's id of the input
	mid     string // the message_id on the wire
	profile string // to which it was sent; empty: the gateway's own choice
	home    bool   // it is a /sethome
	acked   bool   // the gateway has it
	adopted bool   // it began in an earlier run of this process
	texts   int    // with adopted: how many messages were stored
	began   time.Time
	sign    time.Time // when it last showed a sign of life

	content  bool      // it said something
	marked   bool      // the eyes were put on its message
	queued   time.Time // it ends then if its marks were those of the end, and not of queueing
	notified time.Time // when its last notifying message came
	endAt    time.Time // it ends then unless something comes
	stopDue  bool      // an interrupt must be sent as soon as frames may be
	stopping bool
	stopBy   time.Time // it ends then if the gateway does not show that it stopped
	unnamed  bool      // its messages do not name its message, see turns.claim
	asked    []string  // cards without whose answer it cannot go on
	doubt    string    // what the user is told if no sign of life follows

	steered    []*turn // texts that joined it
	answered   bool    // with steered, by an older gateway: its own reply came
	ownReplies int     // likewise: how many of the steered texts were answered
}

// say returns a message of the turn, which may be nil.
func (t *turn) say(id, text string) agent.Say {
	s := agent.Say{ID: id, Text: text}
	if t != nil {
		s.ReplyTo, s.N = t.inputID, t.n
	}
	return s
}

// alive notes a sign of life: it restarts the idle timeout and postpones the end.
func (t *turn) alive(now time.Time) {
	t.sign, t.doubt = now, ""
	t.queued = time.Time{}
	if !t.endAt.IsZero() {
		t.endAt = now.Add(lingerMark)
	}
}

// says notes that the turn said something.
func (t *turn) says(now time.Time) {
	if t != nil {
		t.alive(now)
		t.content = true
	}
}

// pause excludes the time in which the gateway could not be heard from the silence of the turn. The
// rest of the silence counts: a connection that is lost again and again must not postpone the end
// forever.
func (t *turn) pause(since, until time.Time) {
	if t.sign.After(since) {
		since = t.sign
	}
	t.sign = t.sign.Add(until.Sub(since))
}

// waitsFor notes that the turn cannot go on before a card is answered, so that the card is over with
// the turn: nothing else shows it when the turn is stopped, or its process dies. The card of a
// command outlives its turn.
func (t *turn) waitsFor(card, kind string) {
	if t != nil && (kind == "exec_approval" || kind == "clarify") {
		t.asked = append(t.asked, card)
	}
}

// includes reports whether s is t, or joined it.
func (t *turn) includes(s *turn) bool { return s != nil && (s == t || slices.Contains(t.steered, s)) }

// mayEnd reports whether the end of the turn has been seen, so that nothing may join it.
func (t *turn) mayEnd() bool { return !t.endAt.IsZero() || !t.notified.IsZero() || t.stopping }
