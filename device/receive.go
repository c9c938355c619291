package device

import (
	"bytes"
	"cmp"
	"fmt"
	"time"

	"hermes-mobile/frame"
)

// receiver turns the frames of the server into events. Only the goroutine of the connector uses it.
type receiver struct {
	maxFile  int64         // the largest file to accept in frames, in bytes
	roomWait time.Duration // how long to stop reading while the inbox is full

	in        *inbox
	board     *board
	queue     *sendQueue
	calls     *calls
	indicator *indicator

	epoch    string   // of the outbox that position counts
	position position // the durable frames that came
	replies  map[string]*reply
	files    map[string]*incoming
	cards    map[string]bool // id to whether the card is open
}

// resume continues at the current position, or starts over at another place of an outbox.
func (r *receiver) resume(epoch string, at int64, moved bool) {
	if moved {
		r.epoch, r.position = epoch, newPosition(at)
	} else {
		r.position.cut()
	}
}

// cut drops unfinished messages and files: after a reconnect the server sends them from the
// beginning.
func (r *receiver) cut() {
	r.position.cut()
	clear(r.replies)
	clear(r.files)
}

// take handles one text message of the server.
func (r *receiver) take(l *link, data []byte) {
	f, err := frame.DecodeDown(data)
	if err != nil {
		l.cut = fmt.Errorf("device: the server sent a malformed frame: %w", err)
		return
	}
	switch f := f.(type) {
	case *frame.Message:
		r.message(l, f)
	case *frame.Media:
		r.media(l, f)
	case *frame.Prompt:
		r.prompt(f)
	case *frame.PromptDone:
		r.promptDone(l, f)
	case *frame.Echo:
		if r.position.fresh(f.Seq) {
			r.durable(l, Echo{*f}, "", f.Seq, len(f.Text))
		}
	case *frame.Notice:
		if r.position.fresh(f.Seq) {
			r.durable(l, Notice{*f}, "", f.Seq, len(f.Device.Name))
		}
	case *frame.Accepted:
		r.queue.settle(Receipt{ID: f.ID, Duplicate: f.Duplicate, Queued: f.Queued})
	case *frame.Error:
		r.errorFrame(l, f)
	case *frame.Typing:
		r.indicator.typing(!f.Stop)
	case *frame.Avatar:
		r.indicator.avatar(f.State)
	case *frame.Tool:
		r.indicator.sign()
		r.in.push(queued{ev: Tool{*f}, key: "tool " + f.ID + f.State, size: len(f.Text), spare: true})
	case *frame.CapabilitiesChanged:
		r.board.update(func(s *Status) {
			s.Capabilities, s.AnswersAt = f.Capabilities, answersAt(f.Capabilities, time.Now())
			if f.Agent != "" {
				s.Agent = f.Agent
			}
		})
	case *frame.Approved:
		r.board.update(func(s *Status) { s.Approved, s.Pairing = true, "" })
		r.queue.resend()
	case *frame.Delivered:
		r.calls.answer(f.ID, f)
	case *frame.Pong:
		r.calls.answer(f.ID, f)
	case *frame.Result:
		r.calls.answer(f.ID, f)
	case *frame.Unknown:
		r.in.push(queued{ev: Unknown{f.Type, bytes.Clone(data)}, size: len(data), spare: true})
	case *frame.Ready: // the connector read the only one that counts
	}
}

// durable queues a durable event for the loop, or leaves it to the server where the inbox is full.
// The caller checked that the seq is fresh.
func (r *receiver) durable(l *link, ev Event, key string, seq int64, size int) {
	if seq > 0 && !l.lagging.Load() && !r.in.waitRoom(l.ctx, r.roomWait) {
		l.lagging.Store(true)
		if r.in.empty() { // the loop caught up at this very moment, and will not check again
			l.end(errCatchUp)
		}
	}
	if seq > 0 && l.lagging.Load() {
		return // without position.done, the frame comes again
	}
	r.in.push(queued{ev: ev, size: size, epoch: r.epoch, seq: r.position.done(key, seq)})
}

func (r *receiver) message(l *link, m *frame.Message) {
	if !r.position.fresh(m.Seq) {
		return
	}
	r.indicator.sign()
	in := r.replies[m.ID]
	if in == nil {
		in = &reply{}
		r.replies[m.ID] = in
	}
	fits := in.take(m)
	text := in.text()
	if m.Final {
		delete(r.replies, m.ID)
	}
	ev := Message{ID: m.ID, Text: text, Final: m.Final, Interrupted: m.Interrupted, ReplyTo: m.ReplyTo, Source: m.Source, Job: m.Job}
	key := "message " + m.ID
	switch {
	case !fits:
		if m.Final { // without position.done, the whole message comes after a reconnect
			l.end(errGap)
			l.lagging.Store(true)
		}
	case m.Final:
		if m.Seq == 0 && !r.board.get().Approved { // a message with a seq dates from an earlier approval
			r.board.update(func(s *Status) { s.Pairing = text })
		}
		r.durable(l, ev, key, m.Seq, len(text))
	default:
		r.position.begin(key, m.Seq)
		if !l.lagging.Load() {
			r.in.push(queued{ev: ev, key: key, size: len(text), spare: true})
		}
	}
}

func (r *receiver) media(l *link, m *frame.Media) {
	if !r.position.fresh(m.Seq) {
		return
	}
	r.indicator.sign()
	in := r.files[m.ID]
	if in == nil || m.Part == 0 { // a file that starts over was cut before
		in = &incoming{limit: r.maxFile}
		r.files[m.ID] = in
	}
	key := "media " + m.ID
	if !in.take(m) {
		r.position.begin(key, m.Seq)
		return
	}
	delete(r.files, m.ID)
	r.durable(l, in.file, key, m.Seq, len(in.file.Data))
}

// prompt shows a card. After a reconnect a card comes again with its first seq, before the frames
// that the device missed. So its seq never moves the cursor, and its id tells whether it came
// before.
func (r *receiver) prompt(p *frame.Prompt) {
	r.indicator.sign()
	open, known := r.cards[p.ID]
	if !known {
		r.remember(p.ID, true)
	}
	if known && !open {
		return // a replay of a card that ended long ago
	}
	r.in.push(queued{ev: CardShown{Prompt: *p, Again: known}, size: len(p.Text) + len(p.Command)})
}

func (r *receiver) promptDone(l *link, p *frame.PromptDone) {
	id := cmp.Or(p.PromptID, p.ID)
	r.queue.settleCard(id)
	open, known := r.cards[id]
	r.remember(id, false)
	ev := CardDone{ID: id, OptionID: p.OptionID, Expired: p.Expired, By: p.By}
	switch {
	case p.Seq > 0 && r.position.fresh(p.Seq):
		r.durable(l, ev, "", p.Seq, 0)
	case open || !known: // the response to a late answer has no seq, or an old one
		r.in.push(queued{ev: ev})
	}
}

// remember records a card. It forgets closed ones when there are too many.
func (r *receiver) remember(id string, open bool) {
	if len(r.cards) > 1024 {
		for old, open := range r.cards {
			if !open {
				delete(r.cards, old)
			}
		}
	}
	r.cards[id] = open
}

func (r *receiver) errorFrame(l *link, e *frame.Error) {
	if e.Ref != "" {
		if r.queue.has(e.Ref) {
			r.queue.reject(e, r.board.get().Approved)
			return
		}
		if r.calls.answer(e.Ref, e) {
			return
		}
	}
	l.said = e
	r.in.push(queued{ev: Problem{fmt.Errorf("device: %w", e)}, spare: true})
}
