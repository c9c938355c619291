package relay

import (
	"log/slog"
	"slices"
	"time"

	"hermes-mobile/internal/agent"
)

// How the end of a turn is inferred (doc/hermes/relay.md §4, §7).
//
// Newer gateways take the eyes off the user's message and put another mark on it. They hold the
// session for a moment after that, and an event that comes then meets a busy session, so the turn
// ends a little later. When the marks come before anything was said, the message was only queued
// while the gateway starts, and its turn is still to come (recordings 41, 58).
//
// Older gateways set metadata.notify on the last message of a turn, and say nothing when a turn is
// stopped.
//
// In any case a turn has an idle timeout, which every op of its conversation restarts.
const (
	lingerEyes   = 500 * time.Millisecond // after the eyes are gone, if no second mark comes
	lingerNotify = 500 * time.Millisecond // after the last message of an older gateway
	// lingerUnnamed is longer because files may follow, and no marks.
	lingerUnnamed = 2 * time.Second
	// quietNotify is for a newer gateway whose marks do not come: during a stall they are 30 s late.
	quietNotify = 40 * time.Second

	// A gateway that starts holds events for 50 s at most: 30 s for the turns that it resumes and 20 s
	// to warm up (its defaults, read in its source).
	startupGrace = 75 * time.Second
	startupAge   = 2 * time.Minute // how long after its hello it may still be starting
	startupQueue = 3 * time.Second // the marks of queueing come at once
	emptyGrace   = 2 * time.Second // for a turn that said nothing, later

	idleNewer = 5 * time.Minute // it types every two seconds while it works
	idleOlder = 20 * time.Minute
	idleCard  = 2 * time.Hour   // while the user is asked; cards expire before
	idleLost  = 2 * time.Minute // while the gateway is offline
	// idleUnseen ends a turn of a newer gateway that showed nothing since its ack, neither marks nor
	// typing: the gateway had the event from an earlier run of ours, has finished it, and dropped the
	// repeat. It is longer than startupGrace.
	idleUnseen  = 90 * time.Second
	idleAdopted = 60 * time.Second // for a turn of an earlier run that said something
	// idleUntyped ends a turn of a newer gateway that began on another connection or in another run of
	// ours. Its marks may have been lost in between, but while it ran it would type every two seconds.
	idleUntyped = 15 * time.Second
	// idleDoubt is for a turn of which it is not known whether the gateway has it. A gateway that works
	// types every two seconds. 0.19 does not, but its users must not be kept from asking again.
	idleDoubt = 15 * time.Second

	// typingPaused: a newer gateway types every two seconds except while it asks the user something
	// (recording 11, and its source).
	typingPaused = 5 * time.Second
	firstNotice  = 1500 * time.Millisecond // in which a plain send is a notice and no question
	workingEvery = time.Second
	// strayAfter is how long after a turn its last typing op may come.
	strayAfter = time.Second
	keepTurns  = 4
)

// turns infers when the turns of one conversation begin, ask and end. The lock of the gateway must be
// held.
type turns struct {
	device  string
	now     func() time.Time
	log     *slog.Logger
	wire    *wire
	traits  *traits
	reports *reports

	running *turn    // or nil
	past    []*turn  // the last ones, for what comes late
	marked  []string // messages that were marked as done while no turn ran
	ended   time.Time
	// stray is when typing last came that belongs to no turn of ours: the gateway works on this
	// conversation by itself.
	stray time.Time

	question  bool      // the gateway may be waiting for words of the user
	plainLast time.Time // when the last op came, if it was a plain send
	working   time.Time // when the hub was last told that the agent works
	count     int       // turns on this connection
	since     time.Time // when that connection began
}

// of returns the turn of a message id: the running one or one of the last.
func (ts *turns) of(mid string) *turn {
	if mid == "" {
		return nil
	}
	if t := ts.running; t != nil {
		if t.mid == mid {
			return t
		}
		for _, s := range t.steered {
			if s.mid == mid {
				return s
			}
		}
	}
	for _, t := range ts.past {
		if t.mid == mid {
			return t
		}
	}
	return nil
}

// begin makes t the running turn.
func (ts *turns) begin(t *turn) {
	now := ts.now()
	t.began, t.sign = now, now
	if ts.since != ts.wire.connectedAt {
		ts.since, ts.count = ts.wire.connectedAt, 0
	}
	ts.count++
	ts.running = t
	ts.noQuestion()
}

// end makes the running turn a past one and returns it.
func (ts *turns) end() *turn {
	t := ts.running
	ts.running, ts.ended = nil, ts.now()
	ts.noQuestion()
	ts.past = append(append(ts.past, t), t.steered...)
	ts.past = ts.past[max(0, len(ts.past)-keepTurns-len(t.steered)):]
	return t
}

func (ts *turns) noQuestion() { ts.question, ts.plainLast = false, time.Time{} }

// alive notes a sign of life of the running turn, if there is one.
func (ts *turns) alive() {
	if ts.running != nil {
		ts.running.sign = ts.now()
	}
}

// claim gives an op that names no message to the running turn, where it is sure to belong to it. A
// newer gateway that was restarted in mid-turn goes on with the turn by itself, and runs an event that
// it queued while it started later. Both come without marks, or after them, and without the message's
// id. A recovered reply is no such thing (doc/hermes/relay.md §10).
//
// An older gateway names the message of a stopped turn when it answers the message that waited behind
// it.
func (ts *turns) claim(a *action) {
	t, older := ts.running, ts.traits.version == Older
	if ts.claimSteered(a) {
		return
	}
	if t != nil && t.acked && older && a.Op == "send" && a.Metadata.Notify {
		if past := ts.of(a.replyID()); past != nil && past != t && past.stopping {
			a.ReplyTo = t.mid
		}
		return
	}
	if t == nil || !t.acked || older || a.replyID() != "" || a.Metadata.JobID != "" {
		return
	}
	if a.Op != "draft" && (a.Op != "send" || a.plain() || isRecovered(a.Content)) {
		return
	}
	if t.unnamed || !t.marked || !t.queued.IsZero() || t.began.Before(ts.wire.helloAt) {
		t.unnamed = true
		a.Metadata.ReplyTo = t.mid
	}
}

// claimSteered gives a message that names none, or the wrong one, to a text that joined the turn, and
// reports whether it did.
//
// A text joins the running turn where display.busy_input_mode of the gateway is steer. While a tool
// runs, the model reads it with the result of the tool, and the reply of the turn answers both.
// Without a tool, all such texts are answered by one more message after the reply. A newer gateway
// names no message in that. 0.19 names the message of the turn, and then not in the turn's own reply.
func (ts *turns) claimSteered(a *action) bool {
	t := ts.running
	if t == nil || len(t.steered) == 0 || t.unnamed || a.Metadata.JobID != "" || isRecovered(a.Content) {
		return false
	}
	last := t.steered[len(t.steered)-1]
	if ts.traits.version != Older {
		if a.replyID() != "" || !t.content || a.Op != "draft" && (a.Op != "send" || a.plain()) {
			return false
		}
		a.Metadata.ReplyTo = last.mid
		return true
	}
	switch {
	case a.Op != "send":
		return false
	case a.plain() && !asksInWords(a.Content): // more follows
		a.ReplyTo = t.mid
		if t.answered && t.ownReplies < len(t.steered) {
			a.ReplyTo = t.steered[t.ownReplies].mid
			t.ownReplies++
		}
		t.answered = true
		return true
	case t.answered && a.Metadata.Notify && a.replyID() == t.mid:
		a.ReplyTo = last.mid
		return true
	}
	return false
}

// typing handles a typing op: the gateway works on this conversation. held says that the event of the
// running turn was not sent yet.
func (ts *turns) typing(held bool) {
	now := ts.now()
	ts.plainLast = time.Time{}
	if ts.question && ts.traits.version != Older {
		ts.question = false
	}
	t := ts.running
	if t == nil || held {
		if now.Sub(ts.ended) > strayAfter {
			ts.stray = now
		}
		return
	}
	t.sign, t.doubt = now, ""
	if !t.notified.IsZero() {
		t.notified = now
	}
	if t.endAt.IsZero() && now.Sub(ts.working) >= workingEvery {
		ts.working = now
		ts.reports.post(ts.device, agent.Working{})
	}
}

// eyes are put on the message that the gateway works on.
const eyes = "👀"

// endsByMark reports whether a react op may end a turn. Which emoji mean what differs by platform
// name. The first is the one that is put on and taken off again, any other is the outcome.
func endsByMark(a *action) bool { return a.Emoji != eyes || a.Remove }

// react handles a mark on a message of the user.
func (ts *turns) react(a *action) {
	t := ts.running
	if t == nil || t.mid != a.MessageID {
		// It may belong to a turn that the hub is about to submit again, at once, or after one of which
		// it could not store the end.
		if (t == nil || t.adopted) && endsByMark(a) {
			ts.marked = append(ts.marked, a.MessageID)
			ts.marked = ts.marked[max(0, len(ts.marked)-keepTurns):]
		}
		return
	}
	now := ts.now()
	t.sign, t.doubt = now, ""
	switch {
	case a.Emoji == eyes && !a.Remove:
		// Once, or twice in gateways with several profiles, or again after the marks of queueing.
		t.marked, t.endAt, t.queued = true, time.Time{}, time.Time{}
	case a.Emoji == eyes:
		ts.over(t, now, lingerEyes)
	case !a.Remove:
		ts.over(t, now, lingerMark)
	}
}

// over handles the marks that end a turn.
func (ts *turns) over(t *turn, now time.Time, linger time.Duration) {
	// If no eyes were put on in this turn, the gateway had the event from an earlier run of ours and
	// dropped the repeat.
	if t.content || t.stopping || !t.marked {
		t.endAt = now.Add(linger)
		return
	}
	if !t.queued.IsZero() {
		return // the second mark
	}
	grace := emptyGrace
	if ts.starting(t, now) {
		grace = startupGrace
	}
	t.queued = now.Add(grace)
}

// starting reports whether marks that come now may be those of an event that was queued by a gateway
// that is still starting.
func (ts *turns) starting(t *turn, now time.Time) bool {
	return now.Sub(t.began) < startupQueue && t.began.Sub(ts.wire.helloAt) < startupAge
}

// sawSend notes a send, which may show that the gateway is older.
func (ts *turns) sawSend(a *action) {
	t, known := ts.running, ts.traits
	if known.newerHere || t == nil || !t.acked || t.adopted || a.Metadata.JobID != "" || t.began.Before(ts.wire.connectedAt) {
		return
	}
	if known.version.hasAllOps() && (!a.Metadata.Notify || a.replyID() != t.mid) {
		return // a notice of a gateway that starts; only a whole turn shows a downgrade
	}
	known.setVersion(Older)
}

// sent handles what a message says about its turn. t is the turn that the message answers, which may
// be nil or over.
func (ts *turns) sent(t *turn, a *action) {
	now, older := ts.now(), ts.traits.version == Older
	cur := ts.running
	if cur == nil {
		return
	}
	notify := a.Metadata.Notify
	if t == nil && a.replyID() == "" && (notify || older) {
		cur.sign = now
		if notify {
			t = cur // the end of a turn that the gateway continued by itself
		}
	}
	if a.plain() {
		ts.plainLast = now
		early := ts.count <= 1 && !cur.content && now.Sub(cur.began) < firstNotice // "no home channel", say
		if older && (!early || asksInWords(a.Content)) {
			ts.asks()
		}
		return
	}
	ts.plainLast = time.Time{}
	if t != cur || !notify {
		if notify && t != nil && older {
			// Of a turn that ran twice (doc/hermes/relay.md §5), or of this one: the gateway names the
			// former if its event waited for that.
			cur.notified = now
			if cur.includes(t) {
				cur.endAt = now.Add(lingerNotify)
			}
		}
		return
	}
	ts.question = false
	switch {
	case older:
		cur.endAt = now.Add(lingerNotify)
	case cur.unnamed: // its marks are gone already
		cur.endAt = now.Add(lingerUnnamed)
	default:
		cur.notified = now
	}
}

// asks notes that the gateway may wait for words, so that they are admitted.
func (ts *turns) asks() {
	if !ts.question {
		ts.question = true
		ts.reports.changed() // inputs that wait may be admitted now
	}
}

// restarted reports whether a reply comes from a later process than the one that began it: that names
// no message.
func (ts *turns) restarted(replyID string) bool {
	t := ts.of(replyID)
	return t != nil && t.unnamed
}

// tellDoubt tells the user what is not known of a turn, which may be nil.
func (ts *turns) tellDoubt(t *turn, text string) {
	ts.log.Warn("connection lost with an event that may have arrived", "device", ts.device)
	say := t.say(agent.NewID(), text)
	say.Final = true
	ts.reports.store(ts.device, len(text), func(error) {}, say)
}

// sight is what the end of a turn depends on beside the turn.
type sight struct {
	cards     int  // that are open
	inflight  bool // an event is in flight
	streaming bool // a message of the turn is open
}

// look notices, as time passes, a question of a newer gateway in plain words: it has stopped typing.
func (ts *turns) look(now time.Time, s sight) {
	t := ts.running
	if !ts.question && ts.traits.version.hasAllOps() && t.acked && !ts.plainLast.IsZero() && s.cards == 0 &&
		now.Sub(ts.plainLast) > typingPaused && !s.inflight {
		ts.asks()
	}
}

// ending is what must be done with a running turn.
type ending int

const (
	goesOn ending = iota
	endsDone
	endsInterrupted
)

// due returns whether the running turn is over by now. A turn of which no sign of life came for too
// long is logged.
func (ts *turns) due(now time.Time, s sight) ending {
	t, version := ts.running, ts.traits.version
	if !t.acked {
		return goesOn // its idle timeout begins with the ack
	}
	after := func(at time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) > d }
	interrupted := func(yes bool) ending {
		if yes {
			return endsInterrupted
		}
		return endsDone
	}
	idle := func() ending {
		ts.log.Warn("turn idle for too long, ending it", "device", ts.device, "input", t.n, "online", ts.wire.online())
		return endsInterrupted
	}
	switch {
	case after(t.endAt, 0):
		return interrupted(t.stopping)
	case after(t.stopBy, 0):
		return endsInterrupted
	case after(t.queued, 0):
		return endsDone
	case s.cards > 0 || ts.question:
		if after(t.sign, idleCard) {
			return idle()
		}
	case after(t.notified, quietNotify):
		return endsDone
	case !ts.wire.online():
		if after(ts.wire.offlineSince, idleLost) && after(t.sign, idleLost) {
			return idle()
		}
	case t.doubt != "" && !t.adopted && after(t.sign, idleDoubt):
		return endsInterrupted
	case version.hasAllOps() && (t.adopted || t.began.Before(ts.wire.helloAt)) && after(t.sign, idleUntyped) && !ts.resuming(t, now, s):
		ts.log.Info("turn of an earlier connection idle, ending it", "device", ts.device, "input", t.n, "adopted", t.adopted, "said", t.content)
		return interrupted(!t.content || t.adopted && t.texts == 0)
	case version.hasAllOps() && !t.adopted && !t.marked && !t.content && t.sign.Equal(t.began) && after(t.began, idleUnseen):
		return idle()
	case t.adopted && after(t.sign, idleAdopted) && t.texts > 0:
		return endsDone
	case after(t.sign, idleNewer) && version != Older, after(t.sign, idleOlder):
		return idle()
	}
	return goesOn
}

// resuming reports whether a turn of an earlier connection, in the middle of a reply, may still be
// resumed by a gateway that starts.
func (ts *turns) resuming(t *turn, now time.Time, s sight) bool {
	return !t.adopted && now.Sub(ts.wire.helloAt) <= startupGrace && s.streaming
}

// goingIdle handles the end of the gateway's process, and reports whether the running turn is over. A
// newer gateway has finished its turns before. An older one goes on with them after its restart.
func (ts *turns) goingIdle() ending {
	ts.noQuestion()
	t := ts.running
	if t == nil || !t.acked || ts.traits.version == Older {
		return goesOn
	}
	if t.endAt.IsZero() && t.notified.IsZero() {
		return endsInterrupted
	}
	return endsDone
}

// wasMarked reports whether the message of a turn was marked as done while no turn ran.
func (ts *turns) wasMarked(mid string) bool { return slices.Contains(ts.marked, mid) }
