package hub

import (
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// editInterval keeps streamed steps at 8 a second a device (doc/protocol.md §4).
const editInterval = 125 * time.Millisecond

// editSlack is by how much a step may come before its time, after one that came late: an agent's clock is never exact.
const editSlack = 25 * time.Millisecond

// pace says when the next step may be shown.
type pace struct{ due time.Time }

func (p *pace) wait(now time.Time) time.Duration { return p.due.Add(-editSlack).Sub(now) }

// step notes that one is shown. One that overtook the pace holds the next one back no longer than any other.
func (p *pace) step(now time.Time) {
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(editInterval)
	if most := now.Add(editInterval + editSlack); p.due.After(most) {
		p.due = most
	}
}

// saveInterval is how often the text of a message that is being streamed is stored, so that a crash leaves what there was.
const saveInterval = 5 * time.Second

// stream is a message that was begun and has no final yet.
type stream struct {
	say   agent.Say // the newest step
	to    *conn     // the connection that was sent something of it; nil: none
	shown string    // what it was last sent
	units int       // UTF-16 length of shown
	saved time.Time

	mirror bool // of the conversation of another device, whose session stores and ends it
}

func (st *stream) dirty() bool { return st.to == nil || st.shown != st.say.Text }

func (s *session) stream(id string) *stream {
	for _, st := range s.streams {
		if st.say.ID == id {
			return st
		}
	}
	return nil
}

// say applies a step of a message, or its final.
func (s *session) say(b *batch, e agent.Say) {
	e.Text = strings.ToValidUTF8(e.Text, "\uFFFD") // lengths are counted in it
	if e.Final {
		if s.repeats(b, e) {
			return
		}
		s.final(b, e, s.stream(e.ID) != nil)
		return
	}
	st := s.stream(e.ID)
	if st == nil {
		st = &stream{}
		s.streams = append(s.streams, st)
	}
	st.say = e
	if st.saved.IsZero() {
		// The row must be there before the device sees the message, or a crash would leave it without an end.
		st.saved = time.Now()
		b.do(s.howFar(e), nil)
	} else if st.unsaved() {
		st.saved = time.Now()
		s.later("store how far a message has come", s.howFar(e))
	}
	b.then(func() { s.stepped(st) })
}

// stepped shows what was added to a message.
func (s *session) stepped(st *stream) {
	s.speak()
	s.flushStreams()
	if len(s.members) > 0 {
		s.pass(stepped{st.say})
	}
}

// unsaved reports whether the store is to be told how far the message has come.
func (st *stream) unsaved() bool { return time.Since(st.saved) >= saveInterval }

func (s *session) howFar(e agent.Say) func(*store.Tx) error {
	device, m := s.dev.N, store.OpenMessage{ID: e.ID, N: e.N, ReplyTo: e.ReplyTo, Text: e.Text}
	return func(tx *store.Tx) error { return tx.SetOpen(device, m) }
}

// quick implements quick: steps of a message that is stored as begun, and signs of life.
func (e *said) quick(s *session) bool {
	if e.done != nil || s.dev == nil {
		return false
	}
	for _, ev := range e.events {
		switch ev := ev.(type) {
		case agent.Say:
			if st := s.stream(ev.ID); ev.Final || st == nil || st.saved.IsZero() || st.unsaved() {
				return false
			}
		case agent.Working, agent.ToolStep:
		default:
			return false
		}
	}
	return true
}

// final stores the end of a message and sends it. streamed: the device may have seen steps of it.
func (s *session) final(b *batch, e agent.Say, streamed bool) {
	ended := s.dropStream(e.ID)
	s.hub.Metrics.Finals.Inc()
	device := s.dev.N
	m := &frame.Message{ID: e.ID, Text: e.Text, Edit: streamed, Final: true, Interrupted: e.Interrupted, ReplyTo: e.ReplyTo, Source: e.Source, Job: e.Job}
	b.then(func() { s.speak() })
	record := none
	if e.Source == frame.SourceCron {
		record = s.record(store.Delivery{Source: e.Source, Job: e.Job, Message: e.ID, Queued: s.conn == nil})
	}
	s.appendAll(b, &entry{Message: m, ended: ended}, func(tx *store.Tx) error {
		if err := record(tx); err != nil {
			return err
		}
		if streamed {
			if err := tx.CloseOpen(device, e.ID); err != nil {
				return err
			}
		}
		if e.Settles != "" {
			if err := tx.Settle(e.Settles); err != nil {
				return err
			}
		}
		return s.noteSaid(tx, e)
	}, func(err error) {
		if err != nil && ended != nil { // it has no end yet: it gets one with its turn, or when the server stops
			s.streams = append(s.streams, ended)
		}
	})
}

// repeats reports whether a final says again what was said before.
func (s *session) repeats(b *batch, e agent.Say) bool {
	if e.Repeats == "" || s.stream(e.ID) != nil {
		return false
	}
	b.flush()
	known, err := s.hub.store.Said(s.hub.ctx, s.dev.N, e.N, e.Repeats)
	if err != nil {
		s.hub.storeFailed("look up what was said", err)
	}
	return known
}

// noteSaid stores that a reply was said, to know it when the agent says it again.
func (s *session) noteSaid(tx *store.Tx, e agent.Say) error {
	if e.N != 0 {
		if err := tx.Said(e.N); err != nil {
			return err
		}
	}
	if e.Interrupted || e.N == 0 && e.Repeats == "" {
		return nil
	}
	now := time.Now()
	if err := tx.NoteSaid(s.dev.N, e.N, e.Text, now); err != nil {
		return err
	}
	if e.Repeats == "" || e.Repeats == e.Text {
		return nil
	}
	return tx.NoteSaid(s.dev.N, e.N, e.Repeats, now)
}

// flush: it is time for the next streamed step.
type flush struct{}

func (flush) quick(*session) bool { return true }

func (flush) apply(s *session, b *batch) {
	s.timers.flush = nil
	b.then(s.flushStreams)
}

// flushStreams sends the newest step of each message that has one, as far as rate and connection allow. A step never
// overtakes the backlog.
func (s *session) flushStreams() {
	if s.conn == nil || s.behind {
		return
	}
	for _, st := range s.streams {
		if !st.dirty() {
			continue
		}
		if s.full() {
			s.await()
			return
		}
		if wait := s.pace.wait(time.Now()); wait > 0 && st.to != nil {
			s.start(&s.timers.flush, wait, flush{})
			return
		}
		s.sendStep(st)
	}
}

// overtake sends the steps that wait for their time, before something that the device shows below them: a tool, a card, a
// file. A reply that is behind it would seem to come later than it did.
func (s *session) overtake() {
	if s.conn == nil || s.behind {
		return
	}
	for _, st := range s.streams {
		if st.to != nil && st.dirty() && !s.full() {
			s.sendStep(st)
		}
	}
}

func (s *session) sendStep(st *stream) {
	text := st.say.Text
	m := frame.Message{ID: st.say.ID, Text: text, Edit: true, Chunk: frame.Chunk{Total: 1}}
	switch {
	case st.grows(s.conn, &m):
		st.units += utf16Len(*m.Append)
	case s.conn.delta:
		st.units = utf16Len(text)
	}
	s.pace.step(time.Now())
	st.shown, st.to = text, s.conn
	s.hub.Metrics.Interims.Inc()
	s.conn.step(&m)
}

// grows makes m say what it adds to what c shows of the message, where it only adds to it. false: m stays whole.
func (st *stream) grows(c *conn, m *frame.Message) bool {
	added, ok := strings.CutPrefix(m.Text, st.shown)
	if !ok || !c.delta || st.to != c {
		return false
	}
	m.Text, m.Append, m.At = "", &added, st.units
	if m.Edit = !c.tail; c.tail && !m.Final {
		m.At = 0 // the end: the final has the place, by which a device that lacks something notices
	}
	return true
}
