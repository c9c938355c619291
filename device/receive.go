package device

import (
	"bytes"
	"fmt"
	"time"

	"hermes-mobile/frame"
)

// receive takes one frame, on the reading goroutine.
func (d *Device) receive(l *link, data []byte) {
	f, err := frame.DecodeDown(data)
	if err != nil {
		l.cut = fmt.Errorf("device: the server sent what is no frame: %w", err)
		return
	}
	switch f := f.(type) {
	case *frame.Message:
		d.message(l, f)
	case *frame.Media:
		d.media(l, f)
	case *frame.Prompt:
		d.prompt(f)
	case *frame.PromptDone:
		d.promptDone(l, f)
	case *frame.Echo:
		if d.fresh(f.Seq) {
			d.durable(l, Echo{*f}, "", f.Seq, len(f.Text))
		}
	case *frame.Notice:
		if d.fresh(f.Seq) {
			d.durable(l, Notice{*f}, "", f.Seq, len(f.Device.Name))
		}
	case *frame.Accepted:
		d.settle(Receipt{ID: f.ID, Duplicate: f.Duplicate, Queued: f.Queued})
	case *frame.Error:
		d.errorFrame(l, f)
	case *frame.Typing:
		d.mu.Lock()
		d.activityLocked(Activity{Typing: !f.Stop, Avatar: d.activity.Avatar})
		d.mu.Unlock()
	case *frame.Avatar:
		d.mu.Lock()
		d.activityLocked(Activity{Typing: d.activity.Typing, Avatar: f.State})
		d.mu.Unlock()
	case *frame.Tool:
		d.sign()
		d.in.push(queued{ev: Tool{*f}, key: "tool " + f.ID + f.State, size: len(f.Text), spare: true})
	case *frame.CapabilitiesChanged:
		d.change(func(s *Status) {
			s.Capabilities, s.AnswersAt = f.Capabilities, answersAt(f.Capabilities, time.Now())
			if f.Agent != "" {
				s.Agent = f.Agent
			}
		})
	case *frame.Approved:
		d.mu.Lock()
		d.changeLocked(func(s *Status) { s.Approved, s.Pairing = true, "" })
		d.againLocked()
		d.mu.Unlock()
	case *frame.Delivered:
		d.answerCall(f.ID, f)
	case *frame.Pong:
		d.answerCall(f.ID, f)
	case *frame.Result:
		d.answerCall(f.ID, f)
	case *frame.Unknown:
		d.in.push(queued{ev: Unknown{f.Type, bytes.Clone(data)}, size: len(data), spare: true})
	case *frame.Ready: // one is enough
	}
}

// durable hands a durable event to the loop, or leaves it to the server where there is no room. It is not called with a
// seq that came before.
func (d *Device) durable(l *link, ev Event, key string, seq int64, size int) {
	if seq > 0 && !l.behind.Load() && !d.in.waitRoom(l.ctx, d.cfg.roomWait) {
		l.behind.Store(true)
		if d.in.empty() { // the loop caught up at this very moment, and will not look again
			l.end(errCatchUp)
		}
	}
	if seq > 0 && l.behind.Load() {
		return // position.done was not called: it is still to come
	}
	d.mu.Lock()
	epoch := d.epoch
	cursor := d.pos.done(key, seq)
	d.in.push(queued{ev: ev, size: size, epoch: epoch, seq: cursor})
	d.mu.Unlock()
}

func (d *Device) fresh(seq int64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pos.fresh(seq)
}

func (d *Device) begin(key string, seq int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pos.begin(key, seq)
}

func (d *Device) message(l *link, m *frame.Message) {
	if !d.fresh(m.Seq) {
		return
	}
	d.sign()
	d.mu.Lock()
	r := d.replies[m.ID]
	if r == nil {
		r = &reply{}
		d.replies[m.ID] = r
	}
	fits := r.take(m)
	text := r.text()
	if m.Final {
		delete(d.replies, m.ID)
	}
	approved := d.status.Approved
	d.mu.Unlock()

	ev := Message{ID: m.ID, Text: text, Final: m.Final, Interrupted: m.Interrupted, ReplyTo: m.ReplyTo, Source: m.Source, Job: m.Job}
	key := "message " + m.ID
	switch {
	case !fits:
		if m.Final { // position.done is not called: what comes after a reconnect is whole
			l.end(errGap)
			l.behind.Store(true)
		}
	case m.Final:
		if !approved && m.Seq == 0 { // what is numbered is from before
			d.change(func(s *Status) { s.Pairing = text })
		}
		d.durable(l, ev, key, m.Seq, len(text))
	default:
		d.begin(key, m.Seq)
		if !l.behind.Load() {
			d.in.push(queued{ev: ev, key: key, size: len(text), spare: true})
		}
	}
}

func (d *Device) media(l *link, m *frame.Media) {
	if !d.fresh(m.Seq) {
		return
	}
	d.sign()
	in := d.uploads[m.ID]
	if in == nil || m.Part == 0 { // a file that starts over was cut before
		in = &incoming{limit: d.cfg.MaxFileBytes}
		d.uploads[m.ID] = in
	}
	key := "media " + m.ID
	if !in.take(m) {
		d.begin(key, m.Seq)
		return
	}
	delete(d.uploads, m.ID)
	d.durable(l, in.file, key, m.Seq, len(in.file.Data))
}

// prompt shows a card. A card comes again after a reconnect with its first seq, ahead of what was missed, so that a
// card's seq never moves the cursor; its id tells what came before.
func (d *Device) prompt(p *frame.Prompt) {
	d.sign()
	d.mu.Lock()
	open, known := d.cards[p.ID]
	if !known {
		d.rememberLocked(p.ID, true)
	}
	d.mu.Unlock()
	if known && !open {
		return // replayed, and over long since
	}
	d.in.push(queued{ev: CardShown{Prompt: *p, Again: known}, size: len(p.Text) + len(p.Command)})
}

func (d *Device) promptDone(l *link, p *frame.PromptDone) {
	id := p.PromptID
	if id == "" {
		id = p.ID
	}
	// It is the receipt of whatever was answered to this card (§7).
	for _, o := range d.Pending() {
		if a, ok := o.Frame.(*frame.Answer); ok && a.PromptID == id {
			d.settle(Receipt{ID: o.ID})
		}
	}
	d.mu.Lock()
	open, known := d.cards[id]
	d.rememberLocked(id, false)
	fresh := d.pos.fresh(p.Seq)
	d.mu.Unlock()
	ev := CardDone{ID: id, OptionID: p.OptionID, Expired: p.Expired, By: p.By}
	switch {
	case fresh && p.Seq > 0:
		d.durable(l, ev, "", p.Seq, 0)
	case open || !known: // what a late answer is told has no seq, or an old one
		d.in.push(queued{ev: ev})
	}
}

// rememberLocked keeps what is known about a card; of those that are over, a bounded number.
func (d *Device) rememberLocked(id string, open bool) {
	if len(d.cards) > 1024 {
		for old, open := range d.cards {
			if !open {
				delete(d.cards, old)
			}
		}
	}
	d.cards[id] = open
}

func (d *Device) errorFrame(l *link, e *frame.Error) {
	if e.Ref != "" {
		d.mu.Lock()
		_, mine := d.out[e.Ref]
		_, call := d.calls[e.Ref]
		d.mu.Unlock()
		switch {
		case mine:
			d.refused(e)
			return
		case call:
			d.answerCall(e.Ref, e)
			return
		}
	}
	l.said = e
	d.in.push(queued{ev: Problem{e}, spare: true})
}
