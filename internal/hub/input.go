package hub

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/store"
)

// received: the live connection brought a frame.
type received struct {
	c    *conn
	f    frame.Up
	held int64 // of the hub's room for what is not applied yet
}

func (e *received) weight() int {
	switch f := e.f.(type) {
	case *frame.Media:
		return len(f.Data)
	case *frame.Audio:
		return len(f.Data)
	case *frame.Text:
		return len(f.Text)
	case *frame.Deliver:
		return len(f.Data)
	}
	return 64
}

func (e *received) fail(_ *session, _ error) { e.c.send(storeDown(ref(e.f))) }

func (e *received) apply(s *session, b *batch) {
	s.flushHello(e.c, b)
	if s.conn != e.c {
		return // of a connection that was refused or replaced meanwhile
	}
	s.noteWritten()
	if ack, ok := e.f.(*frame.Ack); ok {
		if ack.Token {
			s.tokenKept(b, e.c)
		}
		b.then(func() {
			if ack.Seen {
				s.deliveriesAcked(min(ack.Seq, s.seq), true)
				s.tellSeen(ack.Seq)
			}
			s.forget(ack.Seq)
		})
		return
	}
	if d, ok := e.f.(*frame.Deliver); ok {
		if !s.hub.approved(s.dev.UserID) { // a tunnel makes every phone local
			b.then(func() {
				e.c.send(&frame.Error{Code: frame.Forbidden, Message: "this device is not approved: approve it, or deliver with a token of MOBILE_DELIVER_TOKENS", Ref: d.ID})
			})
			return
		}
		if !s.forbids(b, e) {
			accounts := s.accounts()
			b.then(func() { s.hub.deliver(s.id, accounts, d, e.c.send) })
		}
		return
	}
	if !s.hub.approved(s.dev.UserID) {
		s.stranger(b, e)
		return
	}
	if s.forbids(b, e) {
		return
	}
	switch f := e.f.(type) {
	case *frame.Text:
		s.text(b, e, f)
	case *frame.Audio:
		s.audio(b, e, f)
	case *frame.Media:
		s.upload(b, e, f)
	case *frame.Answer:
		s.answer(b, e, f)
	case *frame.Stop:
		s.stop(b, e, f)
	case *frame.Call:
		s.call(b, e.c, f)
	}
}

// flushHello makes a hello of this connection in the same batch take effect first.
func (s *session) flushHello(c *conn, b *batch) {
	if s.conn != c {
		b.flush()
	}
}

func (s *session) text(b *batch, e *received, f *frame.Text) {
	in := agent.Input{ID: f.ID, Kind: agent.Text, Text: f.Text, ReplyTo: f.ReplyTo, Steer: f.Steer}
	n, accounts := inputBytes(&in)+2*int64(len(f.ID)), s.accounts()
	full := s.hub.messageFits(n, accounts)
	if full == nil {
		full = s.inboxFits(&in)
	}
	if full != nil {
		if !s.seen(b, e, f.ID) { // what is known already needs no room
			e.c.send(s.hub.noRoom(full, false, f.ID))
		}
		return
	}
	s.accept(b, e, f.ID, in, s.hub.countMessage(n, accounts))
}

// accept stores a message, which was counted, and gives its receipt; then it waits for its turn.
func (s *session) accept(b *batch, e *received, id string, in agent.Input, size counted) {
	in.Device, in.Quote = s.dev.Talks(), s.quote(in.ReplyTo)
	body, err := json.Marshal(in)
	if err != nil {
		panic(fmt.Sprintf("hub: encode an input: %v", err))
	}
	hash := ""
	if in.File != nil {
		hash = in.File.Hash
	}
	device, conversation, dup := s.dev.N, s.dev.N, false
	if s.joined() {
		conversation = s.lead
	}
	share := none
	if s.shares() {
		share = s.share(&entry{Echo: echo(in, s.peer()), Hash: hash})
	}
	weight := inputBytes(&in)
	s.coming.messages++
	s.coming.bytes += weight
	b.do(func(tx *store.Tx) (err error) {
		if in.N, dup, err = tx.AcceptFor(conversation, device, id, store.Waiting, body, hash, time.Now()); err != nil || dup {
			return err
		}
		if err := size.save(tx); err != nil {
			return err
		}
		return share(tx)
	}, func(err error) {
		s.coming.messages--
		s.coming.bytes -= weight
		if err != nil || dup {
			size.undo()
		}
		switch {
		case err != nil:
			e.fail(s, err)
			return
		case dup:
			s.duplicate(e.c, id)
			return
		}
		s.hub.Metrics.Accepted.WithLabelValues(kindName(in.Kind)).Inc()
		away := !s.hub.Agent.Status(in.Device).Online
		e.c.send(&frame.Accepted{ID: id, Queued: away})
		if in.Device != s.id {
			s.hub.post(in.Device, &arrived{in: in, away: away, member: s.id})
			return
		}
		s.wakeMembers("")
		s.enter(in, away)
	})
}

// enter hands an accepted input to the agent, now or when its turn has come.
func (s *session) enter(in agent.Input, away bool) {
	if in.Steer && s.turn != nil && !away {
		in.Joins = s.turn.in.N
	}
	if s.turn != nil && !away && (len(s.waiting) == 0 || commands(in) || in.Joins != 0) && s.hub.Agent.Admits(in) {
		s.handAside(in)
		return
	}
	s.line(in)
	if !away {
		s.admit() // what waits for longer comes first
	}
	s.next()
}

// commands reports whether an input is a command, which may pass the messages that wait: that stops what they wait for, say.
func commands(in agent.Input) bool {
	return in.Kind == agent.Text && strings.HasPrefix(strings.TrimSpace(in.Text), "/")
}

// line puts an input among those that wait, in the order in which they were accepted.
func (s *session) line(in agent.Input) {
	at, _ := slices.BinarySearchFunc(s.waiting, in.N, func(w agent.Input, n int64) int { return cmp.Compare(w.N, n) })
	s.waiting = slices.Insert(s.waiting, at, in)
	s.waitsChange(&in, 1)
}

// echo is an input as the other devices of its conversation see it.
func echo(in agent.Input, from frame.Peer) *frame.Echo {
	e := &frame.Echo{ID: in.ID, From: from, Text: in.Text, ReplyTo: in.ReplyTo}
	if f := in.File; f != nil {
		e.File = &frame.EchoFile{Kind: f.Kind, Mime: f.Mime, Filename: f.Name, Size: f.Size}
	}
	return e
}

func (s *session) duplicate(c *conn, id string) {
	s.hub.Metrics.Duplicates.Inc()
	c.send(&frame.Accepted{ID: id, Duplicate: true})
}

func kindName(k agent.InputKind) string {
	switch k {
	case agent.Voice:
		return "audio"
	case agent.Media:
		return "media"
	}
	return "text"
}

// input reads a stored message.
func (s *session) input(e store.Entry) (agent.Input, error) {
	var in agent.Input
	if err := json.Unmarshal(e.Body, &in); err != nil {
		return in, err
	}
	in.N, in.Device, in.Handed, in.Texts = e.N, s.id, e.State == store.Handed, e.Texts
	return in, nil
}

// quote finds the text of a message that the person replies to, while it is kept.
func (s *session) quote(id string) string {
	if id == "" {
		return ""
	}
	text, err := s.hub.store.Quote(s.hub.ctx, s.dev.N, id)
	if err != nil {
		s.hub.storeFailed("look a quoted message up", err)
	}
	return text
}

// seen reports whether a message id is known, and answers the duplicate then. Errors are answered, too.
func (s *session) seen(b *batch, e *received, id string) bool {
	if id == "" {
		return false
	}
	b.flush()
	known, err := s.hub.store.Seen(s.hub.ctx, s.dev.N, id)
	if err != nil {
		s.hub.storeFailed("look a message id up", err)
		e.fail(s, err)
		return true
	}
	if known {
		s.duplicate(e.c, id)
	}
	return known
}

func (s *session) audio(b *batch, e *received, f *frame.Audio) {
	if !s.hub.Agent.Status(s.dev.Talks()).FilesIn {
		e.c.send(noFiles(f.ID))
		return
	}
	if r := media.CheckAudio(f.Format, f.Data); r != nil {
		e.c.send(refused(r, f.ID))
		return
	}
	if s.seen(b, e, f.ID) {
		return
	}
	in := agent.Input{ID: f.ID, Kind: agent.Voice, Text: f.Text}
	full := s.fileFits(&in, int64(len(f.Data)))
	if full != nil {
		e.c.send(s.hub.noRoom(full, true, f.ID))
		return
	}
	file, err := s.hub.Files.Put(f.Data)
	if err != nil {
		s.fileFailed(e, f.ID, err)
		return
	}
	in.File = &agent.File{Kind: "voice", Mime: media.AudioMime(f.Format), Name: "voice." + f.Format, Hash: file.Hash, Size: file.Size}
	s.accept(b, e, f.ID, in, s.hub.countFile(file.Size, inputBytes(&in), s.accounts()))
}

// fileFits returns why a message with a file of a size cannot be stored, nil where it can.
func (s *session) fileFits(in *agent.Input, size int64) error {
	if err := s.hub.fileFits(size, s.accounts()); err != nil {
		return err
	}
	return s.inboxFits(in)
}

// fileFailed answers a file that was not stored: there is no room for it, or the store failed.
func (s *session) fileFailed(e *received, id string, err error) {
	if full := s.hub.noRoom(err, true, id); full != nil {
		e.c.send(full)
		return
	}
	s.hub.storeFailed("store a file", err)
	e.fail(s, err)
}

// stop interrupts the running turn.
func (s *session) stop(b *batch, e *received, f *frame.Stop) {
	if f.ID == "" {
		b.then(s.interrupt)
		return
	}
	if !s.remembers(f.ID) {
		if !s.seen(b, e, f.ID) {
			b.then(func() {
				e.c.send(&frame.Accepted{ID: f.ID})
				s.interrupt()
			})
		}
		return
	}
	device, dup, size := s.dev.N, false, s.countID(f.ID)
	b.do(func(tx *store.Tx) (err error) {
		if _, dup, err = tx.Accept(device, f.ID, store.Done, nil, "", time.Now()); err != nil || dup {
			return err
		}
		return size.save(tx)
	}, func(err error) {
		if err != nil || dup {
			size.undo()
		}
		switch {
		case err != nil:
			e.fail(s, err)
		case dup:
			s.duplicate(e.c, f.ID)
		default:
			e.c.send(&frame.Accepted{ID: f.ID})
			s.interrupt()
		}
	})
}

func (s *session) interrupt() {
	switch {
	case s.joined():
		s.hub.post(s.dev.Conversation, interrupted{})
	case s.turn != nil:
		s.hub.Agent.Stop(s.id)
	}
}

// stranger answers whoever is not approved: with a pairing code, or with how long to wait. Nothing is accepted or kept.
func (s *session) stranger(b *batch, e *received) {
	f := e.f // the answers go to its connection, which may not be the session's any more when they are given
	switch f.(type) {
	case *frame.Text, *frame.Audio, *frame.Media:
	default:
		b.then(func() {
			e.c.send(&frame.Error{Code: frame.Forbidden, Message: "this device is not approved yet: send a message to get a pairing code", Ref: ref(f)})
		})
		return
	}
	if m, ok := f.(*frame.Media); ok && m.Part > 0 {
		return // the first part of the file was answered
	}
	b.then(func() {
		text := s.pairingText()
		e.c.send(&frame.Message{ID: agent.NewID(), Text: text, Chunk: frame.Chunk{Total: 1}, Final: true, ReplyTo: ref(f)})
	})
}

func (s *session) pairingText() string {
	code, err := s.hub.Pairing.Request(s.dev.UserID, s.dev.UserName)
	var delay *access.DelayError
	switch {
	case err == nil:
		return "This device is not approved yet. Its pairing code is " + code + ", valid for one hour. The owner of the agent approves it with\n\n    " +
			"hermes-mobile pairing approve " + code + "\n\nor with `hermes pairing approve mobile " + code + "`. Then send the message again."
	case errors.As(err, &delay):
		why := "a pairing code was given a short while ago"
		if errors.Is(err, access.ErrTooMany) {
			why = "too many devices are waiting for approval"
		} else if errors.Is(err, access.ErrLocked) {
			why = "too many wrong codes were tried"
		}
		return "This device is not approved yet, and " + why + ": wait for the owner, or try again in " + minutes(delay.RetryAfter) + "."
	default:
		s.hub.log.Error("a pairing request could not be made", "device", s.id, "error", err)
		return "This device is not approved yet, and no pairing code can be made now: ask the owner of the agent to look at the server's log."
	}
}

func minutes(d time.Duration) string {
	n := int((d + time.Minute - 1) / time.Minute)
	if n <= 1 {
		return "a minute"
	}
	return strings.TrimSpace(fmt.Sprintf("%d minutes", n))
}
