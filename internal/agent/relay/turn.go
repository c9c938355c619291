package relay

import (
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

// How the end of a turn is found (relay-facts §4, §7).
//
// Newer gateways take the eyes off the person's message and put another mark on
// it. The session is held for a moment after that, and an event that comes then
// meets a busy session, so the turn ends a little later. When the marks come
// before anything was said, the message was only queued while the gateway
// starts, and its turn is still to come (recordings 41, 58).
//
// Older gateways ring the phone with the last message of a turn
// (metadata.notify), and say nothing at all when a turn is stopped.
//
// Whatever happens, a turn has a lease: every op of its conversation renews it.
const (
	lingerMark   = 250 * time.Millisecond // after the second mark
	lingerEyes   = 500 * time.Millisecond // after the eyes are gone, if no second mark comes
	lingerNotify = 500 * time.Millisecond // after the last message of an older gateway
	// lingerUnnamed is longer: files may follow, and no marks.
	lingerUnnamed = 2 * time.Second
	// quietNotify is for a newer gateway whose marks do not come: during a wedge
	// they are 30 s late.
	quietNotify = 40 * time.Second
	// A gateway that starts holds events for 50 s at most: 30 s for what it
	// resumes and 20 s to warm up (its defaults, read in its source).
	startupGrace = 75 * time.Second
	startupAge   = 2 * time.Minute // how long after hello it may still be starting
	startupQueue = 3 * time.Second // the marks of queueing come at once
	emptyGrace   = 2 * time.Second // a turn that said nothing, later
	stopGrace    = 5 * time.Second
	// An older gateway says nothing when it stops a turn of which it said nothing.
	stopGraceOlder = 2 * time.Second
	leaseNewer     = 5 * time.Minute // it types every two seconds while it works
	leaseOlder     = 20 * time.Minute
	// unheard ends a turn of a newer gateway of which nothing at all was seen since its receipt, neither marks nor typing: it had
	// the event from an earlier life of ours, was done with it meanwhile, and dropped the repeat. More than startupGrace.
	unheard     = 90 * time.Second
	leaseCard   = 2 * time.Hour   // while the person is asked; cards expire before
	leaseAway   = 2 * time.Minute // the gateway does not come back
	handedQuiet = 60 * time.Second
	// typingGone ends a turn of a newer gateway that began on another connection or in another life of ours: its marks may
	// have been lost in between, but while it ran it would type every two seconds.
	typingGone = 15 * time.Second
	// typingPaused: a newer gateway types every two seconds except while it asks
	// the person something (recording 11, and its source).
	typingPaused = 5 * time.Second
	firstNotice  = 1500 * time.Millisecond
	workingEvery = time.Second
	keepConvo    = 20 * time.Minute
	// strayTyping: typing that does not come from a turn of ours tells that the
	// gateway works on this conversation by itself: it resumed a turn after its
	// restart, say. An event would meet a busy session (§7), so it waits, but
	// not for ever.
	strayTyping = 2500 * time.Millisecond
	strayAfter  = time.Second // a last tick of our own turn may come late
	strayMax    = 5 * time.Minute
	keepTurns   = 4
)

// convo is the conversation of one device with this gateway.
type convo struct {
	device  string
	turn    *turn   // that runs, or nil
	past    []*turn // the last ones, for what comes late
	streams []*stream
	finals  []*final
	marked  []string // messages that were marked as done while no turn ran
	sealed  string   // draft_id whose message is final
	op      time.Time
	working time.Time // when it was last told
	who     person
	profile string // that the gateway named last, and wants to hear again

	ended    time.Time // when the last turn was
	restFrom time.Time // then, or when the gateway's event loop was seen to stand still last
	pongs    int64     // g.pongs then
	stray    time.Time // the last typing of no turn of ours
	cut      bool      // its last turn was perhaps cut because the gateway stopped
	parked   *item     // waits until that stops
	joining  []*item   // to be added to the turn once nothing is asked

	question  bool      // the gateway may be waiting for words of the person
	plainLast time.Time // when the last op was a plain send; zero: it was another
	turns     int       // turns on this connection
	since     time.Time // g.connectedAt of that

	cards     map[string]string // open cards: nonce of their process, by id
	receipts  int               // receipts of card answers to come, see swallow
	receiptBy time.Time
	onReceipt func(confirmed bool)
	checked   bool // stored cards of earlier processes were looked for
}

// person is who speaks for a device.
type person struct{ device, user, userName string }

// turn is what an input of a person began.
type turn struct {
	n       int64
	inputID string
	mid     string // message_id on the wire
	profile string // that it was sent to; empty: the gateway's own choice
	home    bool   // it is a /sethome
	acked   bool   // the gateway has it
	handed  bool   // began in an earlier life of this process
	texts   int    // with handed: messages it had stored
	began   time.Time
	sign    time.Time // of life

	content  bool // it said something
	marked   bool // eyes were put on it
	queued   time.Time
	notified time.Time // when its last ringing message came
	endAt    time.Time // it ends then, unless something comes
	stopDue  bool      // to be interrupted as soon as frames may be sent
	stopping bool
	stopBy   time.Time
	unnamed  bool     // its messages do not say that they are its, see claim
	asked    []string // cards that it waits for
	doubt    string   // what to tell the person where nothing more is heard of it

	steered    []*turn // that were added to it
	answered   bool    // with steered, by an older gateway: its own reply came
	ownReplies int     // of those, likewise
}

func (g *gateway) convo(device string) *convo {
	c := g.convos[device]
	if c == nil && len(g.convos) < maxConvos {
		c = &convo{device: device, op: g.a.now(), cards: map[string]string{}}
		g.convos[device] = c
	}
	return c
}

// forget drops what is known of a device that is gone.
func (g *gateway) forget(device string) {
	if c := g.convos[device]; c != nil && c.turn == nil {
		delete(g.active, c)
		delete(g.convos, device)
	}
}

// sweep drops conversations in which nothing happened for long.
func (g *gateway) sweep(now time.Time) {
	g.swept = now
	for d, c := range g.convos {
		if c.turn == nil && len(c.streams) == 0 && now.Sub(c.op) > keepConvo && len(c.cards) == 0 {
			delete(g.active, c)
			delete(g.convos, d)
		}
	}
}

// turnOf returns the turn of a message id: the running one or one of the last.
func (c *convo) turnOf(mid string) *turn {
	if mid == "" {
		return nil
	}
	if t := c.turn; t != nil {
		if t.mid == mid {
			return t
		}
		for _, s := range t.steered {
			if s.mid == mid {
				return s
			}
		}
	}
	for _, t := range c.past {
		if t.mid == mid {
			return t
		}
	}
	return nil
}

// claim gives what names no message to the turn that runs, where that is sure to be meant: a newer gateway that was
// restarted in mid-turn goes on with the turn by itself, and an event that it queued while it started runs later. Both
// come without marks, or after them, and without the message's id. A recovered reply is no such thing (relay-facts §10).
//
// An older gateway names the message of a turn that was stopped when it answers what waited behind that.
func (g *gateway) claim(c *convo, a *action) {
	t := c.turn
	if g.claimSteered(c, a) {
		return
	}
	if t != nil && t.acked && g.version == Older && a.Op == "send" && bool(a.Metadata.Notify) {
		if past := c.turnOf(a.replyID()); past != nil && past != t && past.stopping {
			a.ReplyTo = loose(t.mid)
		}
		return
	}
	if t == nil || !t.acked || g.version == Older || a.replyID() != "" || a.Metadata.JobID != "" {
		return
	}
	if a.Op != "draft" && (a.Op != "send" || a.plain() || isRecovered(string(a.Content))) {
		return
	}
	if t.unnamed || !t.marked || !t.queued.IsZero() || t.began.Before(g.helloAt) {
		t.unnamed = true
		a.Metadata.ReplyTo = loose(t.mid)
	}
}

// begin makes t the turn that runs.
func (g *gateway) begin(c *convo, t *turn) {
	now := g.a.now()
	t.began, t.sign = now, now
	if c.since != g.connectedAt {
		c.since, c.turns = g.connectedAt, 0
	}
	c.turns++
	c.turn, c.op = t, now
	c.question, c.plainLast = false, time.Time{}
	g.active[c] = struct{}{}
}

// away takes the time in which the gateway could not be heard out of the silence of a turn. The rest of it counts on: a link
// that is lost again and again must not put off the end of a turn for ever.
func (t *turn) away(since, until time.Time) {
	if t.sign.After(since) {
		since = t.sign
	}
	t.sign = t.sign.Add(until.Sub(since))
}

// alive renews the lease of a turn and puts off its end.
func (g *gateway) alive(t *turn) {
	t.sign, t.doubt = g.a.now(), ""
	t.queued = time.Time{}
	if !t.endAt.IsZero() {
		t.endAt = t.sign.Add(lingerMark)
	}
}

// opTyping: the gateway works on this conversation.
func (g *gateway) opTyping(c *convo) {
	if c == nil {
		return
	}
	now := g.a.now()
	c.op, c.plainLast = now, time.Time{}
	if c.question && g.version != Older {
		c.question = false
	}
	t := c.turn
	if t == nil || c.parked != nil {
		if now.Sub(c.ended) > strayAfter {
			c.stray = now
		}
		return
	}
	t.sign, t.doubt = now, ""
	if !t.notified.IsZero() {
		t.notified = now
	}
	if t.endAt.IsZero() && now.Sub(c.working) >= workingEvery {
		c.working = now
		g.post(c.device, agent.Working{})
	}
}

// eyes are on the message that the gateway works on.
const eyes = "👀"

// opReact reads the marks on the person's message. Which emoji stand for what
// differs by platform name; the first is the one that is put on and taken off
// again, any other is the outcome.
func (g *gateway) opReact(c *convo, a *action) {
	ends := a.Emoji != eyes || bool(a.Remove)
	if c == nil && ends { // after our restart nothing was handed to us yet
		c = g.convo(string(a.ChatID))
	}
	if c == nil {
		return
	}
	if c.turn == nil || c.turn.mid != string(a.MessageID) {
		// Perhaps of a turn that the hub is about to hand us again: at once, or after one that it could not note the end of.
		if (c.turn == nil || c.turn.handed) && ends {
			c.marked = append(c.marked, string(a.MessageID))
			c.marked = c.marked[max(0, len(c.marked)-keepTurns):]
		}
		return
	}
	t, now := c.turn, g.a.now()
	c.op, t.sign, t.doubt = now, now, ""
	switch {
	case a.Emoji == eyes && !bool(a.Remove):
		// Once, or twice in gateways with several profiles, or anew after the
		// marks of queueing.
		t.marked, t.endAt, t.queued = true, time.Time{}, time.Time{}
	case a.Emoji == eyes:
		g.over(c, t, now, lingerEyes)
	case !bool(a.Remove):
		g.over(c, t, now, lingerMark)
	}
}

// over takes the marks that end a turn.
func (g *gateway) over(c *convo, t *turn, now time.Time, linger time.Duration) {
	// Where no eyes were put on in this turn, the gateway had the event from an earlier life of ours and dropped the repeat.
	if t.content || t.stopping || !t.marked {
		t.endAt = now.Add(linger)
		return
	}
	if !t.queued.IsZero() {
		return // the second mark
	}
	grace := emptyGrace
	if g.starting(t, now) {
		grace = startupGrace
	}
	t.queued = now.Add(grace)
}

// starting reports whether marks that came now may be those of an event that was
// queued by a gateway that is still starting.
func (g *gateway) starting(t *turn, now time.Time) bool {
	return now.Sub(t.began) < startupQueue && t.began.Sub(g.helloAt) < startupAge
}

// afterSend looks at what a message says about its turn; t is the turn it
// answers, which may be nil or over.
func (g *gateway) afterSend(c *convo, t *turn, a *action) {
	now := g.a.now()
	notify := bool(a.Metadata.Notify)
	if notify && a.replyID() == "" && c.cut && g.resumes(c) {
		g.resumed(c)
	}
	cur := c.turn
	if cur == nil || c.parked != nil {
		return
	}
	if t == nil && a.replyID() == "" && (notify || g.version == Older) {
		cur.sign = now
		if notify {
			t = cur // the end of a turn that the gateway continued by itself
		}
	}
	if a.plain() {
		c.plainLast = now
		early := c.turns <= 1 && !cur.content && now.Sub(cur.began) < firstNotice // "no home channel", say
		if g.version == Older && (!early || asksInWords(string(a.Content))) {
			g.asks(c)
		}
		return
	}
	c.plainLast = time.Time{}
	if t != cur || !notify {
		if notify && t != nil && g.version == Older {
			// Of a turn that ran twice (relay-facts §5), or of this one: it
			// names the former when its event waited for that in the gateway.
			cur.notified = now
			if cur.isOf(t) {
				cur.endAt = now.Add(lingerNotify)
			}
		}
		return
	}
	c.question = false
	switch {
	case g.version == Older:
		cur.endAt = now.Add(lingerNotify)
	case cur.unnamed: // its marks are gone already
		cur.endAt = now.Add(lingerUnnamed)
	default:
		cur.notified = now
	}
}

// asksInWords reports whether a text of an older gateway is a question by its shape: they begin with this mark, or name
// the command that answers. Neither is translated.
func asksInWords(text string) bool {
	return strings.HasPrefix(text, "❓") || strings.Contains(text, "/approve")
}

// asks notes that the gateway may wait for words, so that they are admitted.
func (g *gateway) asks(c *convo) {
	if !c.question {
		c.question = true
		g.changed() // what waits may be admitted now
	}
}

// lookAt is what the clock does with a conversation.
func (g *gateway) lookAt(c *convo, now time.Time) {
	if then := c.onReceipt; then != nil && now.After(c.receiptBy) {
		c.receipts, c.onReceipt = 0, nil
		then(false)
	}
	t := c.turn
	if t == nil {
		g.quiet(c, now)
		if len(c.streams) == 0 && c.onReceipt == nil {
			delete(g.active, c)
		}
		return
	}
	if !c.question && g.version.all() && t.acked && !c.plainLast.IsZero() && len(c.cards) == 0 &&
		now.Sub(c.plainLast) > typingPaused && g.inflight == nil {
		g.asks(c)
	}
	g.joinNow(c)
	if it := c.parked; it != nil && (now.Sub(c.stray) > strayTyping && !g.mayResume(c) && !g.holds(c, it) || now.Sub(t.began) > strayMax) {
		c.parked, c.cut = nil, false
		g.enqueue(it)
	} else if it != nil && g.lagging(c) && now.Sub(g.pinged) > pingAgain {
		g.ping() // the first, or one that went to a connection which is gone
	}
	if !t.acked {
		return // its lease begins with the receipt
	}
	after := func(at time.Time, d time.Duration) bool { return !at.IsZero() && now.Sub(at) > d }
	switch {
	case after(t.endAt, 0):
		g.endTurn(c, t.stopping)
	case after(t.stopBy, 0):
		g.endTurn(c, true)
	case after(t.queued, 0):
		g.endTurn(c, false)
	case len(c.cards) > 0 || c.question:
		if after(t.sign, leaseCard) {
			g.expired(c)
		}
	case after(t.notified, quietNotify):
		g.endTurn(c, false)
	case !g.online():
		if after(g.awaySince, leaseAway) && after(t.sign, leaseAway) {
			g.expired(c)
		}
	case t.doubt != "" && !t.handed && after(t.sign, doubtWait):
		g.endTurn(c, true)
	case g.version.all() && (t.handed || t.began.Before(g.helloAt)) && after(t.sign, typingGone) && !g.resuming(c, t, now):
		g.log.Info("relay: a turn from before this connection shows no sign of life, ending it", "device", c.device, "input", t.n, "handed", t.handed,
			"said", t.content)
		g.endTurn(c, !t.content || t.handed && t.texts == 0)
	case g.version.all() && !t.handed && !t.marked && !t.content && t.sign.Equal(t.began) && after(t.began, unheard):
		g.expired(c)
	case t.handed && after(t.sign, handedQuiet) && t.texts > 0:
		g.endTurn(c, false)
	case after(t.sign, leaseNewer) && g.version != Older, after(t.sign, leaseOlder):
		g.expired(c)
	}
}

func (g *gateway) expired(c *convo) {
	g.log.Warn("relay: a turn shows no sign of life, ending it", "device", c.device, "input", c.turn.n, "online", g.online())
	g.endTurn(c, true)
}

// quiet ends messages of no running turn that get no more edits.
func (g *gateway) quiet(c *convo, now time.Time) {
	var events []agent.Event
	for _, s := range slices.Clone(c.streams) {
		if now.Sub(s.last) > quietStream {
			if e := g.ends(c, s, s.draft || s.cut); e != nil {
				events = append(events, e)
			}
		}
	}
	if len(events) > 0 {
		g.store(c.device, 0, func(error) {}, events...)
	}
}

// endTurn ends the turn that runs, and what is open of it.
func (g *gateway) endTurn(c *convo, interrupted bool) {
	t := c.turn
	c.turn, c.ended, c.pongs = nil, g.a.now(), g.pongs
	c.restFrom = c.ended
	c.question, c.plainLast = false, time.Time{}
	g.leave(c, t)
	c.past = append(append(c.past, t), t.steered...)
	c.past = c.past[max(0, len(c.past)-keepTurns-len(t.steered)):]
	var events []agent.Event
	for _, s := range slices.Clone(c.streams) {
		if s.replyID == "" || t.isOf(c.turnOf(s.replyID)) {
			if e := g.ends(c, s, interrupted || t.stopping || s.draft || s.cut); e != nil {
				events = append(events, e)
			}
		}
	}
	if t.doubt != "" && !t.stopping {
		g.tellDoubt(c, t, t.doubt)
	}
	for _, id := range t.asked {
		if _, open := c.cards[id]; open {
			delete(c.cards, id)
			events = append(events, agent.CloseCard{ID: id, Expired: true})
		}
	}
	g.post(c.device, append(events, agent.Done{N: t.n, Interrupted: interrupted})...)
}

// stopTurn interrupts the turn that runs (relay-facts §6).
func (g *gateway) stopTurn(c *convo) {
	t := c.turn
	if t.stopping {
		return
	}
	t.stopping, t.stopDue, g.stops = true, true, true
	if it := c.parked; it != nil { // it need not begin at all; what it waits for is stopped
		c.parked = nil
		it.acked()
	}
	g.interrupt(c)
}

// interrupt sends the frame that is due, unless an event is without its receipt:
// then it would not be read anyway.
func (g *gateway) interrupt(c *convo) {
	t := c.turn
	if !t.acked || g.inflight != nil || !g.online() {
		return
	}
	t.stopDue = false
	t.stopBy = g.a.now().Add(stopGrace)
	if g.version == Older {
		t.stopBy = g.a.now().Add(stopGraceOlder)
	}
	g.sendInterrupt(c)
}

func (g *gateway) sendInterrupt(c *convo) {
	// The key names the platform that the gateway made of ours: unknown names
	// are "relay" to it (§5, §9). While that is not settled both are sent, a
	// wrong one is ignored.
	keys := []string{"relay"}
	if name := g.platform(); g.known != "" {
		keys[0] = g.known
	} else if name != "relay" {
		keys = append(keys, name)
	}
	for _, k := range keys {
		g.link.send(encode(interruptFrame{Type: "interrupt_inbound", SessionKey: "agent:" + namespace(g.speaksTo(c)) + ":" + k + ":dm:" + c.device, ChatID: c.device}))
	}
}

// platform is the name that events carry: the first that the gateway said.
func (g *gateway) platform() string {
	if len(g.names) > 0 {
		return g.names[0]
	}
	return "relay"
}

func command(text string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	if strings.HasPrefix(word, "/") {
		return strings.ToLower(word)
	}
	return ""
}

func isStop(in *agent.Input) bool {
	return in.Kind == agent.Text && strings.EqualFold(strings.TrimSpace(in.Text), "/stop")
}

// admits says what may go to a gateway whose turn runs (relay-facts §7): the
// stop command, which becomes an interrupt; words that answer an open question;
// and, for older gateways, the commands that answer an approval, although they
// make it deaf for 30 s. There is no other way.
func (g *gateway) admits(in agent.Input) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.convos[in.Device]
	return c != nil && c.turn != nil && g.mayEnter(c, &in)
}

// mayEnter is admits, for a conversation whose turn runs.
func (g *gateway) mayEnter(c *convo, in *agent.Input) bool {
	if in.Kind != agent.Text {
		return false
	}
	if isStop(in) {
		return true
	}
	if in.Joins != 0 && in.Joins == c.turn.n {
		return g.mayJoin(c, in)
	}
	if !c.turn.acked || !c.turn.endAt.IsZero() {
		return false
	}
	switch command(in.Text) {
	case "":
		return c.question
	case "/approve", "/deny":
		return g.version == Older
	}
	return false
}
