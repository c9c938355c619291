package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/backoff"
)

// retry is the wait before sending a frame again that the server rejected for the moment.
var retry = backoff.Policy{Base: time.Second, Max: 30 * time.Second}

// sendQueue holds everything on its way to the server: messages, files and answers without an ack.
type sendQueue struct {
	store   Store
	in      *inbox
	board   *board
	wake    chan struct{}
	timeout time.Duration // without an ack for this long, a frame is sent again

	adding sync.Mutex // Store.Add and the queue see the same order

	mu     sync.Mutex
	closed bool
	all    map[string]*Outgoing // by id
	talk   []*Outgoing          // texts and voice messages, one after the other
	files  []*Outgoing          // files, one after the other
	aside  []*Outgoing          // answers, each on its own
}

func newSendQueue(store Store, in *inbox, b *board, wake chan struct{}, timeout time.Duration) *sendQueue {
	return &sendQueue{store: store, in: in, board: b, wake: wake, timeout: timeout, all: map[string]*Outgoing{}}
}

// add stores and queues an outgoing frame, in this order, because the writer may send the queue at
// any moment. It returns the earlier one where its id is still on the way.
func (q *sendQueue) add(ctx context.Context, o *Outgoing) (*Outgoing, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("device: send: %w", err)
	}
	q.adding.Lock()
	defer q.adding.Unlock()
	q.mu.Lock()
	old, closed := q.all[o.ID], q.closed
	q.mu.Unlock()
	if closed {
		return nil, ErrClosed
	}
	if old != nil {
		return old, nil
	}
	if o.file == nil {
		o.data = frame.EncodeUp(o.Frame)
	}
	if o.kept {
		if err := q.store.Add(Entry{ID: o.ID, Frame: o.data}); err != nil {
			return nil, fmt.Errorf("device: store message: %w", err)
		}
	}
	o.done = make(chan struct{})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	q.queueLocked(o)
	signal(q.wake)
	return o, nil
}

func (q *sendQueue) queueLocked(o *Outgoing) {
	q.all[o.ID] = o
	switch o.lane {
	case talk:
		q.talk = append(q.talk, o)
	case files:
		q.files = append(q.files, o)
	case aside:
		q.aside = append(q.aside, o)
	}
	q.countLocked()
}

func (q *sendQueue) countLocked() {
	n := len(q.all)
	q.board.update(func(s *Status) { s.Unconfirmed = n })
}

// restore queues a frame of an earlier process. It sends a frame of a later version unchanged, on
// its own.
func (q *sendQueue) restore(e Entry) {
	o := &Outgoing{ID: e.ID, data: e.Frame, kept: true, done: make(chan struct{})}
	o.Frame, _ = frame.DecodeUp(e.Frame)
	switch o.Frame.(type) {
	case *frame.Text, *frame.Audio:
		o.lane = talk
	default:
		o.lane = aside
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queueLocked(o)
}

// has reports whether the id is on the way.
func (q *sendQueue) has(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.all[id] != nil
}

func (q *sendQueue) pending() []*Outgoing {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Concat(q.aside, q.talk, q.files)
}

// settle ends an outgoing frame with its receipt. One that is gone had its receipt before.
func (q *sendQueue) settle(r Receipt) {
	q.mu.Lock()
	o := q.all[r.ID]
	if o == nil {
		q.mu.Unlock()
		return
	}
	delete(q.all, o.ID)
	is := func(p *Outgoing) bool { return p == o }
	q.talk = slices.DeleteFunc(q.talk, is)
	q.files = slices.DeleteFunc(q.files, is)
	q.aside = slices.DeleteFunc(q.aside, is)
	o.finish(r)
	q.in.push(queued{ev: r})
	q.countLocked()
	q.mu.Unlock()
	signal(q.wake)
	if o.kept {
		if err := q.store.Remove(o.ID); err != nil {
			// The next process sends it once more, and the server drops the duplicate.
			q.in.push(queued{ev: Problem{fmt.Errorf("device: remove message: %w", err)}, key: "store"})
		}
	}
}

// settleCard acknowledges every answer to a card, because the end of the card says that the server
// has it (doc/protocol.md §7).
func (q *sendQueue) settleCard(id string) {
	for _, o := range q.pending() {
		if a, ok := o.Frame.(*frame.Answer); ok && a.PromptID == id {
			q.settle(Receipt{ID: o.ID})
		}
	}
}

// reject handles an error frame that names a frame of ours. Either it is final, or a wait may help.
func (q *sendQueue) reject(e *frame.Error, approved bool) {
	switch e.Code {
	case frame.RateLimited, frame.Internal:
		q.mu.Lock()
		defer q.mu.Unlock()
		if o := q.all[e.Ref]; o != nil {
			o.hold = time.Now().Add(max(retry.Delay(o.tries), seconds(e.RetryAfter)))
			o.tries++
			o.resend()
		}
		signal(q.wake)
	default:
		if e.Code == frame.Forbidden && !approved {
			return // the approval is missing; the frame goes out again after it
		}
		q.settle(Receipt{ID: e.Ref, Err: e})
	}
}

// dropLargest ends the frame for which the server closed with 1009: the largest unacknowledged one
// that was sent. Sending it again would end every connection.
func (q *sendQueue) dropLargest() {
	q.mu.Lock()
	var largest *Outgoing
	for _, o := range q.all {
		if !o.sentAt.IsZero() && (largest == nil || o.size() > largest.size()) {
			largest = o
		}
	}
	q.mu.Unlock()
	if largest != nil {
		q.settle(Receipt{ID: largest.ID, Err: &frame.Error{Code: frame.TooBig, Message: "the server accepts no frame of this size", Ref: largest.ID}})
	}
}

// resend makes everything due again, on a new connection or after the approval.
func (q *sendQueue) resend() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, o := range q.all {
		o.resend()
	}
	signal(q.wake)
}

// next picks the next frame to write and marks it as sent on the connection. Without one it returns
// how long to wait.
func (q *sendQueue) next(l *link, s *Status, now time.Time) (*job, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wait := time.Hour
	first := q.aside
	if len(q.talk) > 0 {
		first = append(slices.Clip(first), q.talk[0])
	}
	for _, o := range first {
		due := q.due(l, s, o, now)
		if due <= 0 {
			o.sentOn, o.sentAt = l, now
			return &job{data: o.data, o: o}, 0
		}
		wait = min(wait, due)
	}
	if len(q.files) > 0 {
		o := q.files[0]
		due := q.due(l, s, o, now)
		if o.sentOn == l && o.file.next < o.file.parts { // in the middle of the file
			due = max(o.hold.Sub(now), 0)
		}
		if due <= 0 {
			if o.sentOn != l || o.file.next >= o.file.parts {
				o.file.start(&s.Capabilities)
			}
			o.sentOn, o.sentAt = l, now
			o.file.next++
			return &job{o: o, part: o.file.next - 1}, 0
		}
		wait = min(wait, due)
	}
	return nil, wait
}

// due returns the time until a frame may be sent, or sent again: at once on a new connection, later
// when the ack is missing. The server acknowledges nothing before it approved the device, and
// answers its first message with an approval code. Until then messages go out once per connection,
// and after the approval all of them go out again.
func (q *sendQueue) due(l *link, s *Status, o *Outgoing, now time.Time) time.Duration {
	if !s.Approved && o.lane != talk {
		return time.Hour
	}
	due := o.hold
	if o.sentOn == l {
		if !s.Approved {
			return time.Hour
		}
		if again := o.sentAt.Add(q.timeout); again.After(due) {
			due = again
		}
	}
	return due.Sub(now)
}

// readPart fills a job with its part of the file. It reports false for a source that failed, which
// ends the file.
func (q *sendQueue) readPart(j *job) bool {
	u := j.o.file
	q.mu.Lock()
	size, parts := int64(u.partSize), u.parts
	q.mu.Unlock()
	at := int64(j.part) * size
	buf := make([]byte, min(size, u.size-at))
	if n, err := u.src.ReadAt(buf, at); n < len(buf) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		q.settle(Receipt{ID: j.o.ID, Err: fmt.Errorf("device: read file: %w", err)})
		return false
	}
	m := *j.o.Frame.(*frame.Media)
	m.Part, m.Parts, m.Data = j.part, parts, buf
	if j.part > 0 {
		m.Caption, m.Size = "", 0 // the first part is enough; older servers want the rest in every part
	}
	j.data = frame.EncodeUp(&m)
	return true
}

// wrote records that a frame is on its way. A server that sends no acks settles it with that.
func (q *sendQueue) wrote(j *job, acknowledges bool) {
	o := j.o
	q.mu.Lock()
	if o.sentOn != nil {
		o.sentAt = time.Now() // writing it may have taken long
	}
	whole := o.file == nil || j.part == o.file.parts-1
	sent := int64(0)
	if o.file != nil {
		sent = min(int64(j.part+1)*int64(o.file.partSize), o.file.size)
	}
	q.mu.Unlock()
	if o.file != nil && o.file.progress != nil {
		o.file.progress(sent, o.file.size)
	}
	if whole && !acknowledges {
		q.settle(Receipt{ID: o.ID, Unconfirmed: true})
	}
}

// close ends everything with [ErrClosed]. The frames stay in the store.
func (q *sendQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, o := range q.all {
		o.finish(Receipt{ID: o.ID, Err: ErrClosed})
	}
}
