package device

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// link is one live connection.
type link struct {
	conn   *websocket.Conn
	ctx    context.Context
	cancel context.CancelFunc
	probe  chan struct{} // 1 slot: ping now
	began  time.Time
	heard  atomic.Int64 // when the server last gave a sign of life, nanoseconds after began: a clock that is set moves nothing
	behind atomic.Bool  // durable frames are left to the server: the loop has no room

	once   sync.Once
	reason error

	// Of the reading goroutine alone.
	said  *frame.Error // the last error frame that belongs to nothing
	after time.Duration
	// cut is the error of a message that is no frame. The library gives the beginning of a message for a whole one when the
	// connection breaks there (1.8.15 takes the io.EOF for the message's): that is only known after the next read.
	cut error
}

func (l *link) hear() { l.heard.Store(int64(time.Since(l.began))) }

// quiet is how long the server has given no sign of life.
func (l *link) quiet() time.Duration { return time.Since(l.began) - time.Duration(l.heard.Load()) }

// end breaks the connection; the first reason counts.
func (l *link) end(reason error) {
	l.once.Do(func() { l.reason = reason })
	l.cancel()
}

// online takes over what ready says. Nothing was read after it yet.
func (d *Device) online(l *link, r *frame.Ready) {
	kept := false
	if r.Token != "" {
		err := d.store.SetToken(r.Token)
		if kept = err == nil; !kept {
			d.in.push(queued{ev: Problem{err}})
		}
	}
	d.mu.Lock()
	if r.Token != "" {
		d.token, d.pairing, d.paired = r.Token, false, true
	}
	d.link = l
	if kept { // from now on the one before counts no more
		d.urgent = append(d.urgent, &urgent{data: frame.EncodeUp(&frame.Ack{Token: true}), done: make(chan error, 1)})
	}
	moved := d.resumeLocked(r.Resume)
	cursor := d.cursor
	d.ack = ackState{}
	d.againLocked()
	d.changeLocked(func(s *Status) {
		s.State, s.Err, s.Until = Online, nil, time.Time{}
		s.Session, s.Server, s.AvatarURL = r.Session, r.Server, r.AvatarURL
		s.Capabilities, s.Agent, s.Approved = r.Capabilities, r.Agent, r.Approved
		s.AnswersAt = answersAt(r.Capabilities, time.Now())
		if r.Approved {
			s.Pairing = ""
		}
	})
	d.mu.Unlock()
	if moved {
		// From here on this device resumes: what it was sent and did not handle must come again, even before the first ack.
		if err := d.store.SetCursor(cursor); err != nil {
			d.in.push(queued{ev: Problem{err}, key: "store"})
		}
	}
}

// resumeLocked lines the cursor up with what the server is about to send, and reports whether it moved.
func (d *Device) resumeLocked(s frame.Span) bool {
	if s.Epoch == "" {
		// No outbox there: nothing is numbered, and a cursor means nothing.
		d.epoch, d.pos = "", newPosition(0)
		return false
	}
	if s.Epoch == d.epoch && !s.Lost {
		d.pos.cut()
		return false
	}
	if d.cursor.Epoch != "" {
		d.in.push(queued{ev: HistoryLost{}})
	}
	at := max(s.From-1, 0)
	d.epoch, d.pos, d.cursor = s.Epoch, newPosition(at), frame.Cursor{Epoch: s.Epoch, Seq: at}
	return true
}

// offline takes back what only a live connection has.
func (d *Device) offline(l *link) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.link = nil
	d.pos.cut()
	clear(d.replies)
	clear(d.uploads)
	for _, u := range d.urgent {
		u.done <- ErrLinkLost
	}
	d.urgent = nil
	for id, c := range d.calls {
		close(c)
		delete(d.calls, id)
	}
	d.activityLocked(Activity{Avatar: "idle"})
}

// serve reads until the connection ends, and returns why.
func (d *Device) serve(l *link) error {
	var helpers sync.WaitGroup
	helpers.Go(func() { d.write(l) })
	helpers.Go(func() { l.heartbeat(d.cfg.Heartbeat, d.cfg.PongTimeout) })
	var err error
	for {
		var typ websocket.MessageType
		var data []byte
		if typ, data, err = l.conn.Read(l.ctx); err != nil {
			break
		}
		l.hear()
		if l.cut != nil {
			d.in.push(queued{ev: Problem{l.cut}, spare: true})
			l.cut = nil
		}
		if typ == websocket.MessageText {
			d.receive(l, data)
			l.hear() // receive may have waited for room, which is not the server's silence
		}
	}
	l.end(err)
	l.conn.CloseNow()
	helpers.Wait()

	switch frame.CloseCode(websocket.CloseStatus(err)) {
	case frame.CloseNoAccess:
		return noAccess(l.said, err)
	case frame.CloseReplaced:
		return ErrReplaced
	case frame.CloseTooBig:
		d.tooBig()
	case frame.CloseTryLater:
		if l.said != nil {
			l.after = seconds(l.said.RetryAfter)
		}
	}
	return l.reason
}

// heartbeat pings when nothing was heard for the interval, and breaks the connection where no pong comes (half-open TCP).
func (l *link) heartbeat(interval, timeout time.Duration) {
	t := time.NewTimer(interval)
	defer t.Stop()
	for {
		now := false
		select {
		case <-l.ctx.Done():
			return
		case <-l.probe:
			now = true
		case <-t.C:
		}
		quiet := l.quiet()
		if now || quiet >= interval {
			ctx, cancel := context.WithTimeout(l.ctx, timeout)
			err := l.conn.Ping(ctx)
			cancel()
			if l.ctx.Err() != nil {
				return
			}
			// Anything else heard meanwhile is as good as the pong, which may wait behind a long upload.
			if err != nil && l.quiet() >= timeout {
				l.end(errHalfOpen)
				return
			}
			l.hear()
			quiet = 0
		}
		t.Reset(interval - quiet)
	}
}

// sayGoodbye sends the last ack and closes in the polite way, for a moment: a peer that does not answer is left.
func (l *link) sayGoodbye(ctx context.Context, ack []byte) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, l.cancel)()
	l.once.Do(func() { l.reason = ErrClosed })
	if ack != nil && l.send(ack) != nil {
		return
	}
	l.conn.Close(websocket.StatusNormalClosure, "")
}

// fragment is the most bytes written in one WebSocket frame. A pong must get between the pieces of a long message: the
// library waits for its turn to write one for 5 s only, and a part of a file takes longer on a slow link.
const fragment = 32 << 10

// send writes one message. The link's end is the only thing that stops it, apart from a peer that takes nothing at all.
func (l *link) send(data []byte) error {
	patience := time.Minute + time.Duration(len(data)/4096)*time.Second
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	if len(data) <= fragment {
		return l.conn.Write(ctx, websocket.MessageText, data)
	}
	w, err := l.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return err
	}
	for len(data) > 0 {
		n := min(len(data), fragment)
		if _, err := w.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return w.Close()
}

// fail ends the link after a failed write, unless the reader finds the better reason: the server's close frame.
func (l *link) fail(err error) {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-l.ctx.Done():
	case <-t.C:
		l.end(err)
	}
}
