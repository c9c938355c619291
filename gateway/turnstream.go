package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/sse"
)

// idleTimeoutError means that a stream sent nothing for too long, not even a comment.
type idleTimeoutError struct{}

func (idleTimeoutError) Error() string { return "gateway: stream was silent for too long" }
func (idleTimeoutError) Timeout() bool { return true }

// maxEvent is the most bytes of one event of a stream. The text of a turn can contain an image:
// events of 7 MB have been recorded (doc/hermes/api.md §4.1).
const maxEvent = 16 << 20

// byteOrderMark can begin a document or a stream.
var byteOrderMark = []byte("\uFEFF")

// turnStream is an open response. It has a context of its own: the end of a caller's context ends
// the caller's read.
type turnStream struct {
	reader *sse.Reader
	body   io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	timer  *time.Timer
	sse    bool   // labeled as an event stream
	known  bool   // the first bytes were checked
	peeked []byte // those bytes, until they are read

	mu      sync.Mutex
	reading bool // next is being called
}

// openStream sends the call of a stream once. sent reports whether the gateway may have read the
// request.
func openStream(ctx context.Context, cn *conn, idle time.Duration, build func(context.Context) (*http.Request, error)) (s *turnStream, sent bool, err error) {
	s = &turnStream{idle: idle}
	s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { s.cancel(context.Cause(ctx)) })
	defer stop()
	s.timer = time.AfterFunc(idle, func() { s.cancel(idleTimeoutError{}) })
	defer s.timer.Stop()
	var wrote atomic.Bool
	req, err := build(traceSent(s.ctx, &wrote))
	if err != nil {
		s.cancel(nil)
		return nil, false, err
	}
	req.Header.Set("Accept", "text/event-stream, application/json;q=0.5")
	resp, err := cn.send(req)
	if err != nil {
		err = s.explainTimeout(err)
		s.cancel(nil)
		return nil, wrote.Load(), err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // empty if malformed
	s.sse = kind == "text/event-stream"
	s.body = resp.Body
	s.reader = sse.NewReader(s, maxEvent)
	return s, true, nil
}

// traceSent sets wrote when a request leaves this machine.
func traceSent(ctx context.Context, wrote *atomic.Bool) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { wrote.Store(true) }})
}

// Read reads the body, and fails when nothing arrives for the idle timeout. Comments count.
func (s *turnStream) Read(p []byte) (int, error) {
	if len(s.peeked) > 0 {
		n := copy(p, s.peeked)
		s.peeked = s.peeked[n:]
		return n, nil
	}
	s.timer.Reset(s.idle)
	n, err := s.body.Read(p)
	s.timer.Stop()
	return n, err
}

// errDocument means that a response is one JSON document: the data of the event that comes with the
// error.
var errDocument = errors.New("gateway: response is a document, not an event stream")

// fields start the lines of an event stream.
var fields = [][]byte{[]byte("data:"), []byte("event:"), []byte("id:"), []byte("retry:"), []byte(":")}

// document checks the first bytes, because servers and proxies label streams as documents and
// documents as streams. A response labeled as a stream is one unless it starts like a JSON object.
func (s *turnStream) document() (bool, error) {
	s.known = true
	buf := make([]byte, 0, 512)
	for {
		n, err := s.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		first := bytes.TrimLeft(bytes.TrimPrefix(buf, byteOrderMark), " \t\r\n")
		if enough := len(first) >= len("event:") || len(first) > 0 && (first[0] == '{' || s.sse); enough || err != nil || len(buf) == cap(buf) {
			s.peeked = buf
			if err != nil && !errors.Is(err, io.EOF) {
				return false, s.explainTimeout(&networkError{cause: err})
			}
			if len(first) > 0 && first[0] == '{' {
				return true, nil
			}
			return !s.sse && !slices.ContainsFunc(fields, func(name []byte) bool { return bytes.HasPrefix(first, name) }), nil
		}
	}
}

// whole reads the rest of a document.
func (s *turnStream) whole() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(s, maxAnswer+1))
	switch {
	case err != nil:
		return nil, s.explainTimeout(&networkError{cause: err})
	case len(data) > maxAnswer:
		return nil, errResponseTooLarge
	}
	return bytes.TrimPrefix(data, byteOrderMark), nil
}

// next returns the next event. The error is io.EOF, ErrTooLarge, a *networkError, or errDocument.
// The caller must call interruptRead when ctx ends: watching ctx here would cost more than reading
// the event.
func (s *turnStream) next(ctx context.Context) (sse.Event, error) {
	s.setReading(true)
	defer s.setReading(false)
	if ctx.Err() != nil {
		s.cancel(context.Cause(ctx))
	}
	if !s.known {
		document, err := s.document()
		if err != nil {
			return sse.Event{}, err
		}
		if document {
			data, err := s.whole()
			return sse.Event{Data: data}, cmp.Or(err, errDocument)
		}
	}
	ev, err := s.reader.Next()
	switch {
	case errors.Is(err, sse.ErrTooLarge):
		err = errEventTooLarge
	case err != nil && !errors.Is(err, io.EOF):
		err = s.explainTimeout(&networkError{cause: err})
	}
	return ev, err
}

func (s *turnStream) setReading(waiting bool) {
	s.mu.Lock()
	s.reading = waiting
	s.mu.Unlock()
}

// interruptRead ends the stream if a reader waits for it. Otherwise the stream stays open for the
// next reader.
func (s *turnStream) interruptRead(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading {
		s.cancel(cause)
	}
}

// explainTimeout replaces a cancellation with its cause, the idle timeout.
func (s *turnStream) explainTimeout(err error) error {
	var network *networkError
	if errors.As(err, &network) && errors.Is(context.Cause(s.ctx), idleTimeoutError{}) {
		return &networkError{cause: idleTimeoutError{}}
	}
	return err
}

func (s *turnStream) close() {
	s.cancel(ErrClosed)
	s.body.Close()
}
