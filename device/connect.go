package device

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/backoff"
)

// The reasons for which the device itself ends a connection.
var (
	errCatchUp  = errors.New("device: reconnecting to fetch frames that the loop had no space for")
	errHalfOpen = errors.New("device: the server did not answer a ping")
	errGap      = errors.New("device: reconnecting to fetch a message with a missing piece")
)

// ending tells how one attempt ended, with the connection it may have made.
type ending struct {
	err    error
	after  time.Duration // the wait that the server requested
	online time.Duration // how long the connection was Online
}

// connector keeps the device connected: it dials, serves the connection to its end, and backs off.
type connector struct {
	cfg    *Config
	target *url.URL
	client *http.Client
	ctx    context.Context // until Close
	wake   chan struct{}   // 1 slot: the writer has something to do
	retry  chan struct{}   // 1 slot: Reconnect

	in        *inbox
	board     *board
	acks      *acks
	queue     *sendQueue
	calls     *calls
	indicator *indicator
	receiver  *receiver
	login     *login

	link atomic.Pointer[link] // nil while not Online
}

// current returns the live connection, nil while not Online.
func (c *connector) current() *link { return c.link.Load() }

func (c *connector) reconnect() {
	if l := c.current(); l != nil {
		signal(l.probe)
		return
	}
	if c.board.retry() {
		signal(c.retry)
	}
}

// run connects again and again until Close, or until a retry is pointless and nobody requests one.
func (c *connector) run() {
	for attempt := 0; c.ctx.Err() == nil; {
		select {
		case <-c.retry: // this attempt satisfies an earlier request
		default:
		}
		c.board.update(func(s *Status) { s.State = Connecting })
		end := c.connect()
		if c.ctx.Err() != nil || errors.Is(end.err, ErrClosed) {
			return
		}
		if end.online >= c.cfg.Backoff.Stable {
			attempt = 0
		}
		var denied *NoAccessError
		switch {
		case errors.Is(end.err, errCatchUp):
			continue
		case errors.As(end.err, &denied) && c.login.pairInstead(denied):
			continue
		case denied != nil, errors.Is(end.err, ErrReplaced):
			state := NoAccess
			if denied == nil {
				state = Replaced
			}
			c.board.update(func(s *Status) { s.State, s.Err = state, end.err })
			select {
			case <-c.retry:
				attempt = 0
				continue
			case <-c.ctx.Done():
				return
			}
		}
		wait := max(c.cfg.Backoff.delay(attempt), end.after)
		attempt++
		c.board.update(func(s *Status) { s.State, s.Err, s.Until = Waiting, end.err, time.Now().Add(wait) })
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-c.retry:
			attempt = 0
		case <-c.ctx.Done():
		}
		t.Stop()
	}
}

// delay returns the random wait before attempt n, counted from 0.
func (b Backoff) delay(n int) time.Duration {
	return backoff.Policy{Base: b.Min, Max: b.Max}.Delay(n)
}

// connect makes one connection and serves it to its end.
func (c *connector) connect() ending {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	l := &link{ctx: ctx, cancel: cancel, probe: make(chan struct{}, 1), began: time.Now()}
	conn, end := c.dial(l)
	if conn == nil {
		return end
	}
	defer func() { _ = conn.CloseNow() }()   // after a goodbye it is already closed
	conn.SetReadLimit(frame.MaxFrame + 1024) // the server may count its limit differently by a few bytes
	l.conn = conn
	ready, end := c.greet(l)
	if ready == nil {
		return end
	}
	began := time.Now()
	c.online(l, ready)
	err := c.serve(l)
	c.offline()
	return ending{err: err, after: l.after, online: time.Since(began)}
}

// online adopts what ready says. Nothing was read after it yet.
func (c *connector) online(l *link, r *frame.Ready) {
	var first [][]byte
	if r.Token != "" {
		if err := c.cfg.Store.SetToken(r.Token); err != nil {
			c.in.push(queued{ev: Problem{fmt.Errorf("device: store token: %w", err)}})
		} else { // from now on the server accepts no earlier token
			first = append(first, frame.EncodeUp(&frame.Ack{Token: true}))
		}
		c.login.adopt(r.Token)
	}
	c.link.Store(l)
	at, moved := c.acks.resume(r.Resume)
	c.receiver.resume(r.Resume.Epoch, at, moved)
	c.queue.resend()
	c.calls.attach(first...)
	c.board.update(func(s *Status) {
		s.State, s.Err = Online, nil
		s.Session, s.Server, s.AvatarURL = r.Session, r.Server, r.AvatarURL
		s.Capabilities, s.Agent, s.Approved = r.Capabilities, r.Agent, r.Approved
		s.AnswersAt = answersAt(r.Capabilities, time.Now())
		if r.Approved {
			s.Pairing = ""
		}
	})
}

// offline takes back everything that only a live connection has.
func (c *connector) offline() {
	c.link.Store(nil)
	c.receiver.cut()
	c.calls.detach()
	c.indicator.reset()
}

// serve reads until the connection ends, and returns why.
func (c *connector) serve(l *link) error {
	var helpers sync.WaitGroup
	w := &writer{link: l, wake: c.wake, board: c.board, acks: c.acks, queue: c.queue, calls: c.calls}
	helpers.Go(w.run)
	helpers.Go(func() { l.heartbeat(c.cfg.Heartbeat, c.cfg.PongTimeout) })
	var err error
	for {
		var typ websocket.MessageType
		var data []byte
		if typ, data, err = l.conn.Read(l.ctx); err != nil {
			break
		}
		l.hear()
		if l.cut != nil {
			c.in.push(queued{ev: Problem{l.cut}, spare: true})
			l.cut = nil
		}
		if typ == websocket.MessageText {
			c.receiver.take(l, data)
			l.hear() // take may have waited for space, which is not the server's silence
		}
	}
	l.end(err)
	_ = l.conn.CloseNow() // the link has its reason
	helpers.Wait()

	switch frame.CloseCode(websocket.CloseStatus(err)) {
	case frame.CloseNoAccess:
		return noAccess(l.said, err)
	case frame.CloseReplaced:
		return ErrReplaced
	case frame.CloseTooBig:
		c.queue.dropLargest()
	case frame.CloseTryLater:
		if l.said != nil {
			l.after = seconds(l.said.RetryAfter)
		}
	}
	return l.reason
}
