package device

import (
	"time"

	"hermes-mobile/frame"
)

// urgent is a frame for the live link only: it is written next, or fails with the link.
type urgent struct {
	data []byte
	done chan error // 1 slot: nil once written
}

// job is the next thing to write.
type job struct {
	data   []byte
	urgent *urgent
	o      *Outgoing
	part   int // of a file
}

// write is the writing goroutine of a link.
func (d *Device) write(l *link) {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		j, wait := d.next(l, time.Now())
		if j == nil {
			t.Reset(wait)
			select {
			case <-d.wake:
			case <-t.C:
			case <-l.ctx.Done():
				return
			}
			continue
		}
		if j.o != nil && j.o.file != nil {
			if j = d.readPart(j); j == nil {
				continue
			}
		}
		err := l.send(j.data)
		if j.urgent != nil {
			if err != nil {
				j.urgent.done <- ErrLinkLost
			} else {
				j.urgent.done <- nil
			}
		}
		if err != nil {
			l.fail(err)
			return
		}
		if j.o != nil {
			d.wrote(j)
		}
	}
}

// next picks what to write: what cannot wait, then acks, answers, messages, and a part of a file when nothing else is there.
// With nothing to write it says how long to sleep.
func (d *Device) next(l *link, now time.Time) (*job, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	wait := time.Hour
	if len(d.urgent) > 0 {
		u := d.urgent[0]
		d.urgent = d.urgent[1:]
		return &job{data: u.data, urgent: u}, 0
	}
	if d.ack.count > 0 {
		if left := ackAfter - now.Sub(d.ack.since); left > 0 && d.ack.count < ackEvery {
			wait = min(wait, left)
		} else {
			return &job{data: d.takeAckLocked()}, 0
		}
	}
	for _, o := range d.aside {
		if due := d.dueLocked(l, o, now); due <= 0 {
			d.sentLocked(l, o, now)
			return &job{data: o.data, o: o}, 0
		} else {
			wait = min(wait, due)
		}
	}
	if len(d.talk) > 0 {
		o := d.talk[0]
		if due := d.dueLocked(l, o, now); due <= 0 {
			d.sentLocked(l, o, now)
			return &job{data: o.data, o: o}, 0
		} else {
			wait = min(wait, due)
		}
	}
	if len(d.files) > 0 {
		o := d.files[0]
		due := d.dueLocked(l, o, now)
		if o.sentOn == l && o.file.next < o.file.parts { // in the middle of a series
			due = max(o.hold.Sub(now), 0)
		}
		if due <= 0 {
			if o.sentOn != l || o.file.next >= o.file.parts {
				o.file.start(&d.status.Capabilities)
			}
			d.sentLocked(l, o, now)
			o.file.next++
			return &job{o: o, part: o.file.next - 1}, 0
		}
		wait = min(wait, due)
	}
	return nil, wait
}

// dueLocked tells how long until a frame may be sent, again where it was: now on a new link, later where the receipt is
// missing. A device that is not approved gets no receipts but a pairing code for its first message: there the messages
// are sent once a link, and all again after approval.
func (d *Device) dueLocked(l *link, o *Outgoing, now time.Time) time.Duration {
	if !d.status.Approved && o.lane != talk {
		return time.Hour
	}
	due := o.hold
	if o.sentOn == l {
		if !d.status.Approved {
			return time.Hour
		}
		if again := o.sentAt.Add(d.cfg.ReceiptTimeout); again.After(due) {
			due = again
		}
	}
	return due.Sub(now)
}

func (d *Device) sentLocked(l *link, o *Outgoing, now time.Time) { o.sentOn, o.sentAt = l, now }

// wrote notes that a frame is on its way.
func (d *Device) wrote(j *job) {
	d.mu.Lock()
	o := j.o
	if o.sentOn != nil {
		o.sentAt = time.Now() // writing it may have taken long
	}
	whole := o.file == nil || j.part == o.file.parts-1
	confirmed := d.status.Capabilities.Accepted
	sent := int64(0)
	if o.file != nil {
		sent = min(int64(j.part+1)*int64(o.file.partSize), o.file.size)
	}
	d.mu.Unlock()
	if o.file != nil && o.file.progress != nil {
		o.file.progress(sent, o.file.size)
	}
	// A server without receipts leaves it at that.
	if whole && !confirmed {
		d.settle(Receipt{ID: o.ID, Unconfirmed: true})
	}
}

// takeAckLocked returns the ack frame that is due, nil where none is.
func (d *Device) takeAckLocked() []byte {
	if d.ack.count == 0 {
		return nil
	}
	a := &frame.Ack{Seq: d.ack.seq, Seen: d.ack.seen}
	d.ack = ackState{}
	if !d.status.Capabilities.Resume {
		return nil
	}
	return frame.EncodeUp(a)
}
