package hub

import (
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// editInterval keeps streamed steps at 8 a second for each device (doc/protocol.md §4).
const editInterval = 125 * time.Millisecond

// editSlack is by how much a step may be early after one that was late: an agent's clock is never exact.
const editSlack = 25 * time.Millisecond

// saveInterval is how often the text of a streamed message is stored, so that a crash leaves what there was.
const saveInterval = 5 * time.Second

// pace says when the next step may be sent.
type pace struct{ due time.Time }

func (p *pace) wait(now time.Time) time.Duration { return p.due.Add(-editSlack).Sub(now) }

// step notes that a step is sent. One that was flushed early delays the next no longer than any other.
func (p *pace) step(now time.Time) {
	if p.due.Before(now) {
		p.due = now
	}
	p.due = p.due.Add(editInterval)
	if most := now.Add(editInterval + editSlack); p.due.After(most) {
		p.due = most
	}
}

// stream is a message that was begun and has no final yet.
type stream struct {
	say    agent.Say // the newest step
	shown  display
	saved  time.Time
	mirror bool // of another device's conversation, whose session stores and ends it
}

// dirty reports whether the connection was not sent the newest step.
func (st *stream) dirty() bool { return st.shown.conn == nil || st.shown.text != st.say.Text }

// unsaved reports whether the text should be stored again.
func (st *stream) unsaved() bool { return time.Since(st.saved) >= saveInterval }

// streams are the messages of one conversation that were begun and have no final yet. The newest step of a message
// replaces older ones that were not sent.
type streams struct {
	*core
	out   *outbox
	group *group
	speak func() // is called when a message has text to show

	list  []*stream
	pace  pace
	flush timer
}

func (s *streams) idle() bool { return len(s.list) == 0 && !s.flush.running() }
func (s *streams) close()     { s.flush.stop() }

// reset forgets all messages.
func (s *streams) reset() {
	s.list = nil
	s.flush.stop()
}

func (s *streams) find(id string) *stream {
	for _, st := range s.list {
		if st.say.ID == id {
			return st
		}
	}
	return nil
}

// drop forgets a message that has its final, and returns it.
func (s *streams) drop(id string) *stream {
	for i, st := range s.list {
		if st.say.ID == id {
			s.list = append(s.list[:i:i], s.list[i+1:]...)
			return st
		}
	}
	return nil
}

// dropShown is drop for an entry that ends a message: it sets what the connection shows of it.
func (s *streams) dropShown(e *entry) {
	if e.Message != nil {
		if st := s.drop(e.Message.ID); st != nil {
			e.ended = &st.shown
		}
	}
}

// dropMirrors forgets the messages of another device's conversation.
func (s *streams) dropMirrors() {
	s.list = slices.DeleteFunc(s.list, func(st *stream) bool { return st.mirror })
}

// own returns the messages of the conversation itself.
func (s *streams) own() (list []*stream) {
	for _, st := range s.list {
		if !st.mirror {
			list = append(list, st)
		}
	}
	return list
}

// connected is called when a connection has become the live one: it shows nothing yet.
func (s *streams) connected() {
	for _, st := range s.list {
		st.shown = display{}
	}
}

// say applies a step of a message, or its final.
func (s *streams) say(b *batch, e agent.Say) {
	e.Text = strings.ToValidUTF8(e.Text, "\uFFFD") // lengths are counted in it
	if e.Final {
		if !s.repeats(b, e) {
			s.final(b, e, s.find(e.ID) != nil)
		}
		return
	}
	st := s.find(e.ID)
	if st == nil {
		st = &stream{}
		s.list = append(s.list, st)
	}
	st.say = e
	if st.saved.IsZero() {
		// The row must be there before the device sees the message, or a crash would leave it without an end.
		st.saved = time.Now()
		b.do(s.saveText(e), nil)
	} else if st.unsaved() {
		st.saved = time.Now()
		s.later("store the text of a streamed message", s.saveText(e), nil)
	}
	b.then(func() {
		s.speak()
		s.send()
		if len(s.group.participants) > 0 {
			s.group.peers.passStep(s.group.participants, st.say)
		}
	})
}

// mirrorStep shows a step of a message in another device's conversation.
func (s *streams) mirrorStep(e agent.Say) {
	st := s.find(e.ID)
	if st == nil {
		st = &stream{mirror: true}
		s.list = append(s.list, st)
	}
	st.say = e
	s.send()
}

// quick reports whether a step can be applied without waiting: its message is stored as begun.
func (s *streams) quick(e agent.Say) bool {
	st := s.find(e.ID)
	return !e.Final && st != nil && !st.saved.IsZero() && !st.unsaved()
}

// saveText returns what stores the text of a streamed message so far.
func (s *streams) saveText(e agent.Say) func(*store.Tx) error {
	device, m := s.dev.N, store.OpenMessage{ID: e.ID, N: e.N, ReplyTo: e.ReplyTo, Text: e.Text}
	return func(tx *store.Tx) error { return tx.SetOpen(device, m) }
}

// interrupt ends a message with the text so far.
func (s *streams) interrupt(b *batch, e agent.Say) {
	e.Final, e.Interrupted = true, true
	s.final(b, e, true)
}

// final stores the end of a message and sends it. streamed: the device may have seen steps of it.
func (s *streams) final(b *batch, e agent.Say, streamed bool) {
	out := &entry{Message: &frame.Message{ID: e.ID, Text: e.Text, Edit: streamed, Final: true, Interrupted: e.Interrupted, ReplyTo: e.ReplyTo, Source: e.Source, Job: e.Job}}
	ended := s.drop(e.ID)
	if ended != nil {
		out.ended = &ended.shown
	}
	s.Metrics.Finals.Inc()
	device := s.dev.N
	b.then(s.speak)
	record := none
	if e.Source == frame.SourceCron {
		record = s.out.deliveries.record(store.Delivery{Source: e.Source, Job: e.Job, Message: e.ID, Queued: s.out.conn == nil}, s.out.seq+1)
	}
	s.group.append(b, out, func(tx *store.Tx) error {
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
		return noteSaid(tx, device, e)
	}, func(err error) {
		if err != nil && ended != nil { // it has no end yet: it gets one with its turn, or when the server stops
			s.list = append(s.list, ended)
		}
	})
}

// repeats reports whether a final repeats an earlier message.
func (s *streams) repeats(b *batch, e agent.Say) bool {
	if e.Repeats == "" || s.find(e.ID) != nil {
		return false
	}
	b.flush()
	known, err := s.store.Said(s.ctx, s.dev.N, e.N, e.Repeats)
	if err != nil {
		s.storeFailed("look up earlier messages", err)
	}
	return known
}

// noteSaid stores the text of a reply, to recognize it when the agent repeats it.
func noteSaid(tx *store.Tx, device int64, e agent.Say) error {
	if e.N != 0 {
		if err := tx.Said(e.N); err != nil {
			return err
		}
	}
	if e.Interrupted || e.N == 0 && e.Repeats == "" {
		return nil
	}
	now := time.Now()
	if err := tx.NoteSaid(device, e.N, e.Text, now); err != nil {
		return err
	}
	if e.Repeats == "" || e.Repeats == e.Text {
		return nil
	}
	return tx.NoteSaid(device, e.N, e.Repeats, now)
}

// send sends the newest step of each message that has one, as far as rate and connection allow. A step never goes before
// the backlog.
func (s *streams) send() {
	if !s.out.ready() {
		return
	}
	for _, st := range s.list {
		if !st.dirty() {
			continue
		}
		if s.out.conn.full() {
			s.out.conn.await()
			return
		}
		if wait := s.pace.wait(time.Now()); wait > 0 && st.shown.conn != nil {
			s.flush.startQuick(s, wait, s.flushDue)
			return
		}
		s.sendStep(st)
	}
}

// flushDue sends the next steps, whose time has come.
func (s *streams) flushDue(b *batch) { b.then(s.send) }

// sendNow sends the steps that wait for their time, before an entry that the device shows below them: a tool, a card, a
// file. A reply that comes after it would seem to be later than it was.
func (s *streams) sendNow() {
	if !s.out.ready() {
		return
	}
	for _, st := range s.list {
		if st.shown.conn != nil && st.dirty() && !s.out.conn.full() {
			s.sendStep(st)
		}
	}
}

func (s *streams) sendStep(st *stream) {
	c, text := s.out.conn, st.say.Text
	m := frame.Message{ID: st.say.ID, Text: text, Edit: true, Chunk: frame.Chunk{Total: 1}}
	switch {
	case st.shown.shorten(c, &m):
		st.shown.units += utf16Len(*m.Append)
	case c.delta:
		st.shown.units = utf16Len(text)
	}
	s.pace.step(time.Now())
	st.shown.text, st.shown.conn = text, c
	s.Metrics.Interims.Inc()
	c.step(&m)
}
