package relay

import (
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	cursor = "▉" // the default of streaming.cursor, after a space (relay-facts §2)
	// quietStream is how long a message without a running turn may go without
	// an edit before it is taken as it is.
	quietStream = 15 * time.Second
	keepFinals  = 15 * time.Minute // for repeats
	maxFinals   = 32
	// maxFinalBytes bounds the kept texts of a conversation; the newest is kept
	// whatever its length.
	maxFinalBytes = 256 << 10
	// maxPrefix bounds the prefix of a repeat, see repeat.
	maxPrefix = 400
)

// stream is a message that is not final yet. There are two forms (relay-facts
// §4):
//
// Draft: previews that a final send replaces. The next message of the turn
// takes over the draft's id.
//
// Edit: a send with expect_edits, then edits with the whole text so far. It is
// final with the first edit without a cursor after there was one; with an empty
// cursor setting one cannot tell, then when the next message of the turn begins,
// the turn ends, or nothing comes for some time.
type stream struct {
	wire    string // message_id that the gateway knows, edit form
	id      string // of the Say
	replyID string // whose turn it belongs to
	draft   bool
	draftID string
	text    string // newest, without cursor
	cursor  bool   // a cursor was seen
	cut     bool   // the newest text had one: more was to come
	begun   bool   // a step was posted
	shown   string // its text
	resumed bool   // begun on an earlier connection, see resume.go
	last    time.Time
}

// final is a message that a conversation has, kept for a while to know repeats:
// the gateway sends a reply again when it missed our answer (relay-facts §10, §11).
type final struct {
	id, wire, replyID, text string
	at                      time.Time
	stored                  bool
	waiters                 []func(error)
}

// cutCursor takes a streaming cursor from the end of a text.
func cutCursor(text string) (string, bool) {
	if cutText, ok := strings.CutSuffix(text, cursor); ok {
		return strings.TrimSuffix(cutText, " "), true
	}
	return text, false
}

// interimText is what is shown of a message that is not final: without the blank
// lines that may stand before it until its last edit, and without a line that
// is or becomes "MEDIA:/path" (relay-facts §4).
func interimText(text string) string {
	text = strings.TrimLeft(text, "\r\n")
	i := strings.LastIndexByte(text, '\n') + 1
	const tag = "MEDIA:"
	if line := text[i:]; strings.HasPrefix(line, tag) || len(line) >= 2 && strings.HasPrefix(tag, line) {
		text = text[:i]
	}
	return strings.TrimRight(text, " \t\r\n")
}

// endText is what a message is whose end was not marked.
func endText(text string) string { return strings.TrimLeft(text, "\r\n") }

// draftOf returns the preview that is open for a turn, or nil.
func (c *convo) draftOf(replyID string) *stream {
	for _, s := range c.streams {
		if s.draft && s.replyID == replyID {
			return s
		}
	}
	return nil
}

func (g *gateway) drop(c *convo, s *stream) {
	g.openBytes -= len(s.text)
	c.streams = slices.DeleteFunc(c.streams, func(x *stream) bool { return x == s })
}

// setText sets the newest text of s.
func (g *gateway) setText(s *stream, content loose) {
	g.openBytes -= len(s.text)
	s.text, s.cut = cutCursor(string(content))
	g.openBytes += len(s.text)
	if g.openBytes > hardBytes {
		g.overload("open messages")
	}
}

// step shows the newest text of s, unless the hub is behind.
func (g *gateway) step(c *convo, s *stream) {
	s.last = g.a.now()
	g.active[c] = struct{}{}
	text := interimText(s.text)
	if text == "" || g.slow() && s.begun || s.resumed && !s.follows(text) {
		return
	}
	s.begun, s.shown = true, text
	g.post(c.device, g.say(c.turnOf(s.replyID), s.id, text))
}

// ends returns the final message for s, which is open no more; nil when it had
// no text at all.
func (g *gateway) ends(c *convo, s *stream, interrupted bool) agent.Event {
	g.drop(c, s)
	text := endText(s.text)
	if strings.TrimSpace(text) == "" {
		if !s.begun {
			return nil
		}
		text = s.shown // never less than there was
	}
	if s.resumed && !s.follows(text) {
		text = s.shown
	}
	say := g.say(c.turnOf(s.replyID), s.id, text)
	say.Final, say.Interrupted = true, interrupted
	r := c.remember(s.replyID, say, g.a.now())
	r.wire, r.stored = s.wire, true
	return say
}

// opDraft takes a preview. It has been answered.
func (g *gateway) opDraft(c *convo, a *action) {
	replyID := a.replyID()
	if t := c.turnOf(replyID); t != nil {
		g.alive(t)
		t.content = true
	}
	if id := string(a.DraftID); id != "" && id == c.sealed {
		return // came after its message
	}
	s := c.draftOf(replyID)
	for _, x := range c.streams {
		if s == nil && replyID != "" && x.replyID == replyID && g.before(x) {
			s, x.draft = x, true
		}
	}
	if s == nil {
		if len(c.streams) >= maxStreams {
			return
		}
		s = &stream{id: agent.NewID(), replyID: replyID, draft: true}
		c.streams = append(c.streams, s)
	}
	g.before(s)
	s.draftID = string(a.DraftID)
	g.setText(s, a.Content)
	if e := g.diverge(c, s); e != nil {
		g.store(c.device, a.bytes, func(error) {}, e...)
	}
	if !a.Final {
		g.step(c, s)
		return
	}
	c.sealed = s.draftID
	if e := g.ends(c, s, false); e != nil {
		g.store(c.device, a.bytes, func(error) {}, e)
	}
}

const maxStreams = 16 // open messages of a conversation

// beginStream takes the first piece of a message that will be edited.
func (g *gateway) beginStream(c *convo, t *turn, a *action) {
	replyID := a.replyID()
	var events []agent.Event
	var old *stream                             // that this one goes on with
	for _, s := range slices.Clone(c.streams) { // the message before is whole
		if s.replyID == replyID && replyID != "" && g.before(s) && old == nil {
			old = s
			g.drop(c, s)
		} else if !s.draft && (s.replyID == replyID || len(c.streams) >= maxStreams) {
			if e := g.ends(c, s, s.cut); e != nil {
				events = append(events, e)
			}
		}
	}
	id := agent.NewID()
	s := &stream{wire: id, id: id, replyID: replyID, last: g.a.now()}
	d := c.draftOf(replyID)
	if d == nil && g.version == Newer && c.turn != nil && replyID == c.turn.mid && !c.turn.began.Before(g.connectedAt) {
		g.setVersion(Early) // one that was exchanged for an older one; with drafts this would be one
	}
	if d != nil {
		id = d.id
		s.wire, s.id, s.begun, s.shown = id, id, d.begun, d.shown
		g.drop(c, d)
	}
	if old != nil {
		id = old.id
		s.wire, s.id, s.begun, s.shown, s.resumed = id, id, old.begun, old.shown, true
	}
	g.setText(s, a.Content)
	s.cursor = s.cut
	c.streams = append(c.streams, s)
	g.active[c] = struct{}{}
	events = append(events, g.diverge(c, s)...)
	if text := interimText(s.text); text != "" && (!s.resumed || s.follows(text)) {
		s.begun, s.shown = true, text
		events = append(events, g.say(t, s.id, text))
	}
	if len(events) == 0 {
		g.interim(a, id)
		return
	}
	g.store(c.device, a.bytes, g.settle(a, id), events...)
}

// isRecovered reports whether a text is a reply that the gateway sends again.
func isRecovered(text string) bool { return strings.HasPrefix(text, "♻") }

// takeOver decides under which id a whole message goes, and what is to be ended
// before it. It continues the open message of its turn when it replaces its
// draft, or begins with its text (relay-facts §7: after a wedge the whole text
// comes as a new message); else that one is ended, and this is the rest (§10).
func (g *gateway) takeOver(c *convo, a *action) (id string, before []agent.Event) {
	id = agent.NewID()
	replyID := a.replyID()
	// A turn that the gateway goes on with by itself has no message's id (§10),
	// nor has a recovered reply.
	if replyID == "" && (!bool(a.Metadata.Notify) || isRecovered(string(a.Content))) {
		return id, nil
	}
	taken := false
	for _, s := range slices.Clone(c.streams) {
		if s.replyID != replyID || replyID == "" && !s.draft {
			continue
		}
		switch {
		case taken:
			if e := g.ends(c, s, s.draft || s.cut); e != nil {
				before = append(before, e)
			}
		case g.before(s) && !s.follows(string(a.Content)) && g.restarted(c, replyID): // else it is the rest
			before = append(before, g.cutOff(c, s))
			g.drop(c, s)
		case s.draft:
			id, taken = s.id, true
			if a.Metadata.Notify {
				c.sealed = s.draftID
			}
			g.drop(c, s)
		case strings.HasPrefix(endText(string(a.Content)), strings.TrimRight(endText(s.text), " \n")):
			id, taken = s.id, true
			g.drop(c, s)
		default:
			if e := g.ends(c, s, false); e != nil {
				before = append(before, e)
			}
		}
	}
	return id, before
}

// opEdit takes the newest text of a message, or closes a card.
func (g *gateway) opEdit(c *convo, a *action) {
	wire := string(a.MessageID)
	if card, ok := strings.CutPrefix(wire, cardPrefix); ok {
		g.cardGone(c, card)
		g.store(c.device, 0, g.settle(a, wire), agent.CloseCard{ID: card, Expired: true})
		return
	}
	text, cut := cutCursor(string(a.Content))
	var s *stream
	for _, x := range c.streams {
		if x.wire == wire && !x.draft {
			s = x
		}
	}
	if t := c.turn; t != nil && (s == nil || s.replyID == t.mid) {
		g.alive(t)
		t.content = true
	}
	if s == nil {
		// Ended already, or from before our restart. The same text is nothing
		// new, anything else goes on as another message: nothing is lost.
		// Tool progress is such, whose lines grow (§4).
		s = &stream{wire: wire, id: agent.NewID()}
		if c.turn != nil {
			s.replyID = c.turn.mid
		}
		for _, f := range c.finals {
			known := f.wire == wire || f.id == wire
			if known {
				s.replyID = f.replyID
			}
			if f.text == endText(text) && (known || f.replyID != "" && f.replyID == s.replyID) {
				g.answer(a.requestID, result{Success: true, MessageID: wire})
				return
			}
		}
		if strings.TrimSpace(text) == "" {
			g.answer(a.requestID, result{Success: true, MessageID: wire})
			return
		}
		if len(c.streams) >= maxStreams {
			oldest := c.streams[0]
			if e := g.ends(c, oldest, oldest.draft || oldest.cut); e != nil {
				g.store(c.device, a.bytes, func(error) {}, e)
			}
		}
		c.streams = append(c.streams, s)
	}
	g.setText(s, a.Content)
	if e := g.diverge(c, s); e != nil {
		g.store(c.device, a.bytes, func(error) {}, e...)
	}
	if cut || !s.cursor {
		s.cursor = s.cursor || cut
		g.interim(a, wire)
		g.step(c, s)
		return
	}
	t := c.turnOf(s.replyID)
	e := g.ends(c, s, t != nil && t.stopping)
	if e == nil {
		g.answer(a.requestID, result{Success: true, MessageID: wire})
		return
	}
	g.store(c.device, a.bytes, g.settle(a, wire), e)
}

// remember keeps a final message.
func (c *convo) remember(replyID string, say agent.Say, now time.Time) *final {
	f := &final{id: say.ID, replyID: replyID, text: say.Text, at: now}
	c.finals = append(c.finals, f)
	size := 0
	for i := len(c.finals) - 1; i >= 0; i-- {
		if size += len(c.finals[i].text); i < len(c.finals)-maxFinals || size > maxFinalBytes && i < len(c.finals)-1 {
			c.finals = slices.Delete(c.finals, 0, i+1)
			break
		}
	}
	return f
}

func (c *convo) unremember(f *final) {
	c.finals = slices.DeleteFunc(c.finals, func(x *final) bool { return x == f })
}

// repeat returns the message that a send repeats, or nil. That is one of the
// same turn with the same text, or one whose text stands behind a line of
// explanation in a send that answers nothing ("♻️ Recovered reply …", §10) or
// the same turn ("(Response formatting failed, plain text:)", §11). The words of
// the explanation are translated, so only its shape counts, and the text must
// have been a reply: two notices alike are two notices.
func (c *convo) repeat(a *action, now time.Time) *final {
	text := string(a.Content)
	replyID := a.replyID()
	for i := len(c.finals) - 1; i >= 0; i-- {
		f := c.finals[i]
		if f.replyID == "" || f.text == "" || now.Sub(f.at) > keepFinals {
			continue
		}
		if f.replyID == replyID && (f.text == text || f.text == endText(text)) {
			return f
		}
		if replyID != "" && replyID != f.replyID {
			continue
		}
		prefix, ok := strings.CutSuffix(text, f.text)
		prefix = strings.TrimRight(prefix, " ")
		if !ok || len(prefix) > maxPrefix || !strings.HasSuffix(prefix, "\n") {
			continue
		}
		head := strings.TrimRight(prefix, "\n")
		switch {
		case strings.Contains(head, "\n"):
		case replyID == "" && isRecovered(head):
			return f
		case replyID != "" && strings.HasPrefix(head, "(") && strings.HasSuffix(head, ":)"):
			return f
		}
	}
	return nil
}

// joinRepeat answers a repeat as its original is.
func (g *gateway) joinRepeat(f *final, a *action) {
	then := g.settle(a, f.id)
	if f.stored {
		then(nil)
		return
	}
	f.waiters = append(f.waiters, then)
}
