package relay

import (
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	// strayTyping: typing that does not come from a turn of ours tells that the gateway works on this
	// conversation by itself. It resumed a turn after its restart, say. An event would meet a busy
	// session (doc/hermes/relay.md §7), so it waits, but not forever.
	strayTyping = 2500 * time.Millisecond
	maxPark     = 5 * time.Minute

	// resumeSign is how long after its hello a gateway that was stopped in mid-turn is given to show, by
	// typing, that it resumes the turn. It says hello before it looks for turns to resume, and on a busy
	// machine more than ten seconds passed between the two. An event that reaches it earlier is
	// answered by the resumed turn.
	resumeSign = 30 * time.Second
	// cutBefore is how long before it says that it stops a gateway may have ended a turn for that.
	cutBefore = 10 * time.Second
)

const messageInDoubt = "It isn't known whether the agent got this message: the connection to it broke off at that moment. It wasn't sent again, so nothing is done twice. If no reply comes, send it again."

// inputs are what the user of one conversation says, on its way to the gateway. An input begins a turn,
// joins the running one, or is admitted while it runs. The lock of the gateway must be held.
type inputs struct {
	device   string
	now      func() time.Time
	wire     *wire
	traits   *traits
	reports  *reports
	queue    *queue
	files    *fileRoute
	identity *identity
	turns    *turns
	cards    *cards
	rest     rest
	wake     func() // has the clock look at the conversation

	parked  *item   // begins the running turn, and waits until the gateway is free
	joining []*item // join the running turn when nothing is asked any more
	cut     bool    // the last turn was perhaps cut because the gateway stopped
}

// isStop reports whether an input is the command that stops the running turn.
func isStop(in *agent.Input) bool {
	return in.Kind == agent.Text && strings.EqualFold(strings.TrimSpace(in.Text), "/stop")
}

// setsHome reports whether an input makes its device the home channel.
func setsHome(in *agent.Input) bool { return in.Kind == agent.Text && command(in.Text) == "/sethome" }

// admits reports whether an input may go to a gateway while a turn of the conversation runs
// (doc/hermes/relay.md §7). Those are the stop command, which becomes an interrupt; texts that join the
// turn; words that answer an open question; and, for older gateways, the commands that answer an
// approval, although they stall the gateway for 30 s. There is no other way.
func (is *inputs) admits(in *agent.Input) bool {
	t := is.turns.running
	if t == nil || in.Kind != agent.Text {
		return false
	}
	if isStop(in) {
		return true
	}
	if in.Joins != 0 && in.Joins == t.n {
		return is.mayJoin(in)
	}
	if !t.acked || !t.endAt.IsZero() {
		return false
	}
	switch command(in.Text) {
	case "":
		return is.turns.question
	case "/approve", "/deny":
		return is.traits.version == Older
	}
	return false
}

// mayJoin reports whether an input may join the running turn. That is possible where
// display.busy_input_mode of the gateway is steer: the text is then a plain event, which stalls no
// reader. See turns.claimSteered for the answer. An event that reaches a gateway which is only
// beginning the turn gets a turn of its own, named by its id.
func (is *inputs) mayJoin(in *agent.Input) bool {
	t := is.turns.running
	return t != nil && is.traits.steers && in.Joins == t.n && in.Kind == agent.Text && command(in.Text) == "" && !t.mayEnd() && !t.adopted
}

// submit gives an input to the gateway.
func (is *inputs) submit(in agent.Input, ack func(error)) {
	ev := is.event(&in)
	if in.Kind == agent.Text || in.File == nil {
		is.send(in, ev, ack)
		return
	}
	f := in.File
	kind := f.Kind
	if in.Kind == agent.Voice {
		kind = "voice"
	}
	switch kind {
	case "image", "animation":
		ev.MessageType = "photo"
	case "voice", "audio", "video":
		ev.MessageType = kind
	default:
		ev.MessageType = "document"
	}
	is.files.attach(in.N, f, func(url string, err error) {
		if err != nil {
			ack(err)
			return
		}
		ev.MediaURLs = []string{url}
		ev.Media = []wireMedia{{URL: url, Mime: f.Mime, Filename: f.Name}}
		is.send(in, ev, ack)
	})
}

// event returns the event of an input, without its file.
func (is *inputs) event(in *agent.Input) event {
	ev := is.identity.event(is.turns.running, in.Text, "text", is.identity.mid(in.N))
	if in.ReplyTo == "" {
		return ev
	}
	ev.ReplyToID = in.ReplyTo
	if in.Quote != "" {
		own := ownID.MatchString(in.ReplyTo)
		author := ev.Source.UserName
		if own {
			author = "Hermes"
		}
		ev.ReplyTo = &quoted{Text: in.Quote, Author: author, IsOwn: own}
		if is.traits.version == Older && is.turns.running == nil {
			ev.Text = withQuote(ev.Text, ev.ReplyTo)
		}
	}
	return ev
}

// send queues an event. It begins a turn, or goes into the running one.
func (is *inputs) send(in agent.Input, ev event, ack func(error)) {
	it, err := newItem(is.device, ev, agent.Given{N: in.N})
	switch {
	case err != nil:
		ack(err)
	case is.mayJoin(&in):
		is.join(in, it, ack)
	case is.turns.running != nil:
		is.enter(in, it, ack)
	default:
		is.begin(in, it, ev.Source.Profile, ack)
	}
}

// begin queues an event that begins a turn, or parks it until the gateway is free.
func (is *inputs) begin(in agent.Input, it *item, profile string, ack func(error)) {
	t := &turn{n: in.N, inputID: in.ID, mid: it.id, profile: profile, home: setsHome(&in)}
	is.turns.begin(t)
	is.wake()
	it.acked = func() {
		t.acked = true
		t.began, t.sign = is.now(), is.now()
		ack(nil)
		is.setHome(&in)
	}
	it.rejected = func(err error) {
		if is.turns.running == t {
			is.turns.running = nil
		}
		ack(err)
	}
	it.lost = func() {
		t.acked, t.doubt, t.sign = true, messageInDoubt, is.now()
		ack(nil)
	}
	it.command = in.Kind == agent.Text && command(in.Text) != ""
	busy := is.traits.version != Older && (is.now().Sub(is.turns.stray) < strayTyping || is.mayResume())
	if busy || is.rest.holds(it.command, is.traits.steers) {
		is.parked = it
		if is.rest.lagging() {
			is.rest.rounds.ping()
		}
		return
	}
	is.queue.add(it)
}

// enter queues an event that was admitted into the running turn. Its own part is over when the gateway
// has it.
func (is *inputs) enter(in agent.Input, it *item, ack func(error)) {
	is.turns.noQuestion()
	is.turns.alive()
	it.acked = func() {
		ack(nil)
		is.setHome(&in)
		is.reports.post(is.device, agent.Done{N: in.N})
	}
	it.rejected = ack
	it.lost = func() {
		it.acked()
		is.turns.tellDoubt(&turn{n: in.N, inputID: in.ID}, messageInDoubt)
	}
	is.queue.add(it)
}

// join gives an input to the gateway for the running turn. While the gateway waits for an answer, for
// which it would be taken, it is held.
func (is *inputs) join(in agent.Input, it *item, ack func(error)) {
	t := is.turns.running
	it.joins = t.n
	it.acked = func() {
		t.steered = append(t.steered, &turn{n: in.N, inputID: in.ID, mid: it.id})
		ack(nil)
		is.reports.post(is.device, agent.Done{N: in.N})
	}
	it.rejected = ack
	it.lost = func() {
		it.acked()
		is.turns.tellDoubt(t.steered[len(t.steered)-1], messageInDoubt)
	}
	is.joining = append(is.joining, it)
	is.joinNow()
}

// joinNow sends what is held for the running turn, if nothing is asked.
func (is *inputs) joinNow() {
	if len(is.joining) == 0 || is.turns.running == nil || len(is.cards.open) > 0 || is.turns.question {
		return
	}
	list := is.joining
	is.joining = nil
	for _, it := range list {
		is.queue.add(it)
	}
}

// endTurn returns to the hub what was to join a turn that is over, and was not written.
func (is *inputs) endTurn(t *turn) {
	is.rest.begin(is.turns.ended)
	list := append(is.joining, is.queue.withdraw(func(it *item) bool { return it.joins == t.n && it.device == is.device })...)
	is.joining = nil
	for _, it := range list {
		is.queue.takeBack(it)
		it.rejected(agent.ErrOwnTurn)
	}
}

// adopt begins a turn for an input that was acknowledged in an earlier run of this process. It is not
// sent again (doc/hermes/relay.md §10): its turn goes on until its end is seen or nothing is heard of
// it.
func (is *inputs) adopt(in agent.Input) {
	profile, _ := is.identity.nextProfile() // most likely still the one with which it began
	t := &turn{n: in.N, inputID: in.ID, mid: is.identity.mid(in.N), profile: profile, home: setsHome(&in),
		acked: true, adopted: true, texts: in.Texts, content: true}
	if !is.traits.version.dropsRepeats() && in.Texts == 0 {
		t.doubt = messageInDoubt
	}
	is.turns.begin(t)
	is.wake()
	if is.turns.wasMarked(t.mid) { // it ended before we knew of it again
		t.endAt = is.now().Add(lingerMark)
	}
	is.cards.adopt(t, in.Cards)
}

func (is *inputs) setHome(in *agent.Input) {
	if setsHome(in) {
		is.reports.post(is.device, agent.Home{})
	}
}

// mayResume reports whether the gateway may be about to resume the turn that it cut when it stopped, or
// has resumed it: it has typed, and neither sent the end of that turn nor stopped typing for longer than
// a busy machine explains.
func (is *inputs) mayResume() bool {
	if is.cut && is.resumes() {
		is.cut = is.now().Sub(is.turns.stray) < idleUntyped
	} else if is.cut {
		is.cut = is.now().Sub(is.wire.helloAt) <= resumeSign
	}
	return is.cut
}

// resumes reports whether the gateway has typed since its hello, for no turn of ours.
func (is *inputs) resumes() bool { return is.turns.stray.After(is.wire.helloAt) }

// sent notes a message of the gateway, which may end the turn that it resumed. It holds the session for
// a moment after that, as after any turn.
func (is *inputs) sent(a *action) {
	if a.Metadata.Notify && a.replyID() == "" && is.cut && is.resumes() {
		is.cut, is.turns.ended = false, is.now()
		is.rest.begin(is.turns.ended)
	}
}

// goingIdle notes that the gateway stops. It may have ended the last turn for that, as if it was done.
func (is *inputs) goingIdle() {
	is.cut = is.turns.running != nil || is.now().Sub(is.turns.ended) < cutBefore
}

// clock sends what has waited long enough, while a turn runs.
func (is *inputs) clock(now time.Time) {
	is.joinNow()
	it := is.parked
	if it == nil {
		return
	}
	free := now.Sub(is.turns.stray) > strayTyping && !is.mayResume() && !is.rest.holds(it.command, is.traits.steers)
	if free || now.Sub(is.turns.running.began) > maxPark {
		is.parked, is.cut = nil, false
		is.queue.add(it)
	} else if is.rest.lagging() && now.Sub(is.rest.rounds.pinged) > pingAgain {
		is.rest.rounds.ping() // the first, or one that went to a connection that is over
	}
}

// pong notes a pong while an event is parked, and reports whether more are needed.
func (is *inputs) pong(stood bool) (more bool) {
	if is.parked == nil {
		return false
	}
	if stood {
		is.rest.stood()
	}
	return is.rest.lagging()
}

// stop drops the parked event: its turn need not begin at all, and what it waits for is stopped.
func (is *inputs) stop() {
	if it := is.parked; it != nil {
		is.parked = nil
		it.acked()
	}
}

// giveBack returns the parked event to the hub.
func (is *inputs) giveBack() {
	if it := is.parked; it != nil {
		is.parked = nil
		it.rejected(agent.ErrAway)
	}
}
