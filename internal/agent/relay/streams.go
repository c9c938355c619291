package relay

import (
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	// quietStream is how long a message without a running turn may go without an edit before it is
	// final as it is.
	quietStream = 15 * time.Second
	maxStreams  = 16 // open messages of a conversation
)

// stream is a message that is not final yet. It has one of two forms (doc/hermes/relay.md §4).
//
// Draft: previews that a final send replaces. The next message of the turn takes over the id of the
// draft.
//
// Edit: a send with expect_edits, then edits with the whole text so far. It is final with the first
// edit without a cursor after one with it. If the cursor setting is empty, that cannot be told. Then
// it is final when the next message of the turn begins, the turn ends, or nothing comes for a while.
type stream struct {
	wire    string // the message_id that the gateway knows, in the edit form
	id      string // of the agent.Say
	replyID string // whose turn it belongs to
	draft   bool
	draftID string
	text    string // the newest, without cursor
	cursor  bool   // a cursor was seen
	cut     bool   // the newest text had one: more was to come
	begun   bool   // an edit was posted
	shown   string // its text
	resumed bool   // begun on an earlier connection, see streams.resumes
	last    time.Time
}

// follows reports whether a text continues what was shown of a resumed message.
func (s *stream) follows(text string) bool {
	return strings.HasPrefix(finalText(text), strings.TrimRight(s.shown, " \r\n"))
}

// isIn reports whether a text begins with the whole of an open message.
func (s *stream) isIn(text string) bool {
	return strings.HasPrefix(finalText(text), strings.TrimRight(finalText(s.text), " \n"))
}

// unfinished reports whether more was to come.
func (s *stream) unfinished() bool { return s.draft || s.cut }

// streams are the open messages of one conversation, and the last final ones. The lock of the gateway
// must be held.
//
// A gateway whose process was killed in the middle of a turn goes on with it when it is back, and says
// its reply from the beginning. What the phone has of that reply continues under its id, and never
// gets shorter: nothing of the new text is shown before it is as long as the old one. If it turns out
// to be another text, the old one is ended as it is, and the new one is a message of its own.
type streams struct {
	device  string
	now     func() time.Time
	wire    *wire
	traits  *traits
	reports *reports
	answers *answers
	turns   *turns

	list   []*stream
	sealed string // the draft_id whose message is final
	finals finals
}

// draftOf returns the draft that is open for a turn, or nil.
func (ss *streams) draftOf(replyID string) *stream {
	for _, s := range ss.list {
		if s.draft && s.replyID == replyID {
			return s
		}
	}
	return nil
}

// begun reports whether a message of a turn is open that was shown.
func (ss *streams) begun(mid string) bool {
	return slices.ContainsFunc(ss.list, func(s *stream) bool { return s.replyID == mid && s.begun })
}

// open adds a message.
func (ss *streams) open(s *stream) { ss.list = append(ss.list, s) }

// drop removes a message that is open no more.
func (ss *streams) drop(s *stream) {
	ss.reports.reserve(-len(s.text))
	ss.list = slices.DeleteFunc(ss.list, func(x *stream) bool { return x == s })
}

// setText sets the newest text of s.
func (ss *streams) setText(s *stream, content string) {
	before := len(s.text)
	s.text, s.cut = cutCursor(content)
	ss.reports.reserve(len(s.text) - before)
}

// resumes reports whether a message was begun on an earlier connection, and marks it as resumed then.
func (ss *streams) resumes(s *stream) bool {
	if !s.resumed && s.begun && !s.last.IsZero() && s.last.Before(ss.wire.helloAt) {
		s.resumed = true
	}
	return s.resumed
}

// show posts the newest text of s, unless the hub lags.
func (ss *streams) show(s *stream) {
	s.last = ss.now()
	text := interimText(s.text)
	if text == "" || ss.reports.lagging() && s.begun || s.resumed && !s.follows(text) {
		return
	}
	s.begun, s.shown = true, text
	ss.reports.post(ss.device, ss.turns.of(s.replyID).say(s.id, text))
}

// end returns the final message of s, which is open no more, or nil if it had no text at all.
func (ss *streams) end(s *stream, interrupted bool) agent.Event {
	ss.drop(s)
	text := finalText(s.text)
	if strings.TrimSpace(text) == "" {
		if !s.begun {
			return nil
		}
		text = s.shown // never less than there was
	}
	if s.resumed && !s.follows(text) {
		text = s.shown
	}
	say := ss.turns.of(s.replyID).say(s.id, text)
	say.Final, say.Interrupted = true, interrupted
	f := ss.finals.add(s.replyID, say, ss.now())
	f.wire, f.stored = s.wire, true
	return say
}

// endAll ends the messages that match and returns their events.
func (ss *streams) endAll(match func(*stream) bool, interrupted func(*stream) bool) (events []agent.Event) {
	for _, s := range slices.Clone(ss.list) {
		if match(s) {
			if e := ss.end(s, interrupted(s)); e != nil {
				events = append(events, e)
			}
		}
	}
	return events
}

// endTurn ends the messages of a turn that is over, and those of no turn.
func (ss *streams) endTurn(t *turn, interrupted bool) []agent.Event {
	return ss.endAll(func(s *stream) bool { return s.replyID == "" || t.includes(ss.turns.of(s.replyID)) },
		func(s *stream) bool { return interrupted || t.stopping || s.unfinished() })
}

// endQuiet ends messages of no running turn that get no more edits.
func (ss *streams) endQuiet(now time.Time) {
	events := ss.endAll(func(s *stream) bool { return now.Sub(s.last) > quietStream }, (*stream).unfinished)
	if len(events) > 0 {
		ss.reports.store(ss.device, 0, func(error) {}, events...)
	}
}

// cutOff ends a resumed message with what was shown of it.
func (ss *streams) cutOff(s *stream) agent.Event {
	say := ss.turns.of(s.replyID).say(s.id, s.shown)
	say.Final, say.Interrupted = true, true
	return say
}

// diverge ends what was shown of a resumed message if its newest text is another one, which gets an id
// of its own.
func (ss *streams) diverge(s *stream) []agent.Event {
	text := interimText(s.text)
	if !s.resumed || s.follows(text) || strings.HasPrefix(s.shown, text) {
		return nil
	}
	e := ss.cutOff(s)
	s.id, s.begun, s.shown, s.resumed = agent.NewID(), false, "", false
	return []agent.Event{e}
}

// draft handles a preview. It has been answered.
func (ss *streams) draft(a *action) {
	replyID := a.replyID()
	ss.turns.of(replyID).says(ss.now())
	if a.DraftID != "" && a.DraftID == ss.sealed {
		return // it came after its message
	}
	s := ss.draftOf(replyID)
	for _, x := range ss.list {
		if s == nil && replyID != "" && x.replyID == replyID && ss.resumes(x) {
			s, x.draft = x, true
		}
	}
	if s == nil {
		if len(ss.list) >= maxStreams {
			return
		}
		s = &stream{id: agent.NewID(), replyID: replyID, draft: true}
		ss.open(s)
	}
	ss.resumes(s)
	s.draftID = a.DraftID
	ss.setText(s, a.Content)
	if e := ss.diverge(s); e != nil {
		ss.reports.store(ss.device, a.size, func(error) {}, e...)
	}
	if !a.Final {
		ss.show(s)
		return
	}
	ss.sealed = s.draftID
	if e := ss.end(s, false); e != nil {
		ss.reports.store(ss.device, a.size, func(error) {}, e)
	}
}

// begin handles the first piece of a message that will be edited. t is the turn that it answers, which
// may be nil.
func (ss *streams) begin(t *turn, a *action) {
	replyID := a.replyID()
	var events []agent.Event
	var old *stream                           // that this one continues
	for _, s := range slices.Clone(ss.list) { // the message before is complete
		if s.replyID == replyID && replyID != "" && ss.resumes(s) && old == nil {
			old = s
			ss.drop(s)
		} else if !s.draft && (s.replyID == replyID || len(ss.list) >= maxStreams) {
			if e := ss.end(s, s.cut); e != nil {
				events = append(events, e)
			}
		}
	}
	id := agent.NewID()
	s := &stream{wire: id, id: id, replyID: replyID, last: ss.now()}
	d := ss.draftOf(replyID)
	cur := ss.turns.running
	if d == nil && ss.traits.version == Newer && cur != nil && replyID == cur.mid && !cur.began.Before(ss.wire.connectedAt) {
		ss.traits.setVersion(Early) // it was replaced by an older one; one with drafts would have sent a draft
	}
	if d != nil {
		id = d.id
		s.wire, s.id, s.begun, s.shown = id, id, d.begun, d.shown
		ss.drop(d)
	}
	if old != nil {
		id = old.id
		s.wire, s.id, s.begun, s.shown, s.resumed = id, id, old.begun, old.shown, true
	}
	ss.setText(s, a.Content)
	s.cursor = s.cut
	ss.open(s)
	events = append(events, ss.diverge(s)...)
	if text := interimText(s.text); text != "" && (!s.resumed || s.follows(text)) {
		s.begun, s.shown = true, text
		events = append(events, t.say(s.id, text))
	}
	if len(events) == 0 {
		ss.answers.interim(a, id)
		return
	}
	ss.reports.store(ss.device, a.size, ss.answers.stored(a, id), events...)
}

// edit handles the newest text of a message.
func (ss *streams) edit(a *action) {
	wire := a.MessageID
	text, cut := cutCursor(a.Content)
	var s *stream
	for _, x := range ss.list {
		if x.wire == wire && !x.draft {
			s = x
		}
	}
	if t := ss.turns.running; t != nil && (s == nil || s.replyID == t.mid) {
		t.says(ss.now())
	}
	if s == nil {
		if s = ss.reopen(a, text); s == nil {
			ss.answers.accept(a, wire)
			return
		}
	}
	ss.setText(s, a.Content)
	if e := ss.diverge(s); e != nil {
		ss.reports.store(ss.device, a.size, func(error) {}, e...)
	}
	if cut || !s.cursor {
		s.cursor = s.cursor || cut
		ss.answers.interim(a, wire)
		ss.show(s)
		return
	}
	t := ss.turns.of(s.replyID)
	e := ss.end(s, t != nil && t.stopping)
	if e == nil {
		ss.answers.accept(a, wire)
		return
	}
	ss.reports.store(ss.device, a.size, ss.answers.stored(a, wire), e)
}

// reopen returns a new message for an edit of one that is not open: it has ended, or is older than our
// restart. The same text is nothing new, and gives nil. Any other text continues as another message, so
// nothing is lost. Tool progress is such, whose lines grow (doc/hermes/relay.md §4).
func (ss *streams) reopen(a *action, text string) *stream {
	s := &stream{wire: a.MessageID, id: agent.NewID()}
	if t := ss.turns.running; t != nil {
		s.replyID = t.mid
	}
	var same bool
	if s.replyID, same = ss.finals.edited(s.wire, s.replyID, text); same || strings.TrimSpace(text) == "" {
		return nil
	}
	if len(ss.list) >= maxStreams {
		oldest := ss.list[0]
		if e := ss.end(oldest, oldest.unfinished()); e != nil {
			ss.reports.store(ss.device, a.size, func(error) {}, e)
		}
	}
	ss.open(s)
	return s
}

// expectsEdits reports whether a send is the first piece of a message that will be edited. While a
// draft is open it is the whole first part of a long reply (doc/hermes/relay.md §4), unless it has a
// cursor: then the gateway went back to the edit form.
func (ss *streams) expectsEdits(a *action) bool {
	if !a.Metadata.ExpectEdits || a.Metadata.Notify {
		return false
	}
	_, cut := cutCursor(a.Content)
	return cut || ss.draftOf(a.replyID()) == nil
}

// takeOver decides under which id a whole message goes, and what must be ended before it. It continues
// the open message of its turn if it replaces its draft or begins with its text: after a stall the
// whole text comes as a new message (doc/hermes/relay.md §7). Otherwise that one is ended, and this is
// the rest (§10).
func (ss *streams) takeOver(a *action) (id string, before []agent.Event) {
	id = agent.NewID()
	replyID := a.replyID()
	// A turn that the gateway continues by itself names no message (§10), nor does a recovered reply.
	if replyID == "" && (!a.Metadata.Notify || isRecovered(a.Content)) {
		return id, nil
	}
	ended := func(e agent.Event) {
		if e != nil {
			before = append(before, e)
		}
	}
	taken := false
	for _, s := range slices.Clone(ss.list) {
		if s.replyID != replyID || replyID == "" && !s.draft {
			continue
		}
		switch {
		case taken:
			ended(ss.end(s, s.unfinished()))
		case ss.resumes(s) && !s.follows(a.Content) && ss.turns.restarted(replyID): // else it is the rest
			ended(ss.cutOff(s))
			ss.drop(s)
		case s.draft:
			id, taken = s.id, true
			if a.Metadata.Notify {
				ss.sealed = s.draftID
			}
			ss.drop(s)
		case s.isIn(a.Content):
			id, taken = s.id, true
			ss.drop(s)
		default:
			ended(ss.end(s, false))
		}
	}
	return id, before
}

// storeFinal stores events of which say is a final message, remembers it for repeats, and answers its
// op then.
func (ss *streams) storeFinal(a *action, say agent.Say, events ...agent.Event) {
	f := ss.finals.add(a.replyID(), say, ss.now())
	answer := ss.answers.stored(a, say.ID)
	ss.reports.store(ss.device, len(say.Text), func(err error) {
		if err != nil {
			ss.finals.drop(f)
		}
		answer(err)
		f.settle(err)
	}, events...)
}
