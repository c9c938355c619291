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
	conn    *websocket.Conn
	ctx     context.Context
	cancel  context.CancelFunc
	probe   chan struct{} // 1 slot: ping now
	began   time.Time
	heard   atomic.Int64 // the server's last sign of life, in nanoseconds after began: a clock change moves nothing
	lagging atomic.Bool  // the loop has no space, so durable frames are left to the server

	once   sync.Once
	reason error

	// The reading goroutine alone uses these.
	said  *frame.Error  // the last error frame without a ref
	after time.Duration // the wait that the server requested
	// cut is the error of a message that is not a frame. When the connection breaks inside a
	// message, the library returns the beginning as a whole message (1.8.15 takes the io.EOF for
	// the message's), so only the next read tells whether this one was complete.
	cut error
}

func (l *link) hear() { l.heard.Store(int64(time.Since(l.began))) }

// quiet returns how long the server has shown no sign of life.
func (l *link) quiet() time.Duration { return time.Since(l.began) - time.Duration(l.heard.Load()) }

// end breaks the connection. The first reason counts.
func (l *link) end(reason error) {
	l.once.Do(func() { l.reason = reason })
	l.cancel()
}

// heartbeat pings when the server was quiet for the interval, and ends a connection without a pong
// (half-open TCP).
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
			// Any other sign of life is as good as the pong, which may wait behind a long upload.
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

// sayGoodbye sends the last ack and the close frame. It waits for a moment only, in case the peer
// does not answer.
func (l *link) sayGoodbye(ctx context.Context, ack []byte) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	defer context.AfterFunc(ctx, l.cancel)()
	l.once.Do(func() { l.reason = ErrClosed })
	if ack != nil && l.send(ack) != nil {
		return
	}
	_ = l.conn.Close(websocket.StatusNormalClosure, "") // the device closes either way
}

// fragment is the largest WebSocket frame that send writes, in bytes. A pong must fit between the
// fragments of a long message: the library waits only 5 s for its turn to write one, and a part of
// a file takes longer on a slow connection.
const fragment = 32 << 10

// send writes one message. Only the end of the connection stops it, or a peer that reads nothing at
// all.
func (l *link) send(data []byte) error {
	timeout := time.Minute + time.Duration(len(data)/4096)*time.Second
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
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

// fail ends the connection after a failed write, unless the reader finds the better reason: the
// server's close frame.
func (l *link) fail(err error) {
	t := time.NewTimer(time.Second)
	defer t.Stop()
	select {
	case <-l.ctx.Done():
	case <-t.C:
		l.end(err)
	}
}
