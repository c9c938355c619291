package apiproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxBody is the limit of Hermes' API server.
	maxBody = 10_000_000
	// smallBody is how much of a body needs nothing of the memory budget, since a user has few
	// requests at a time.
	smallBody = 128 << 10
	// largeBodies is how many larger bodies a user may send at a time.
	largeBodies = 2
	// firstPiece is the size of a body's first buffer.
	firstPiece = 4 << 10
	// bodyTimeout is the time for a body to arrive.
	bodyTimeout = 2 * time.Minute
	// lingerTimeout is how long a rejected body may go on arriving.
	lingerTimeout = 5 * time.Second
)

// Reasons for rejecting a body.
var (
	errTooLarge = errors.New("the body is too large")
	errUserFull = errors.New("the user sends too many large bodies at once")
	errFull     = errors.New("too many large bodies arrive at once")
)

// body is a request's body with its share of the memory budget. The share is released once the API
// server has the body.
type body struct {
	proxy *Proxy
	user  string
	data  []byte
	taken int64 // of the budget
	large bool  // it counts toward largeBodies
	once  sync.Once
}

// release frees the body and its share of the budget.
func (b *body) release() {
	b.once.Do(func() {
		b.proxy.held.Add(-b.taken)
		if b.large {
			b.proxy.pace.endLarge(b.user)
		}
		b.data = nil
	})
}

// readBody reads a body, because the API server needs its length, or answers the request. It takes
// memory as the bytes arrive, whatever length was announced.
func (f *Proxy) readBody(w http.ResponseWriter, r *http.Request, user string) (b *body, ok bool) {
	b = &body{proxy: f, user: user}
	if r.ContentLength == 0 || r.Body == nil {
		return b, true
	}
	timer := http.NewResponseController(w)
	err := errTooLarge
	if r.ContentLength <= maxBody {
		_ = timer.SetReadDeadline(time.Now().Add(bodyTimeout))
		err = b.read(http.MaxBytesReader(w, r.Body, maxBody), r.ContentLength)
		_ = timer.SetReadDeadline(time.Time{})
	}
	if err == nil {
		return b, true
	}
	b.release()
	_ = timer.EnableFullDuplex() // the answer doesn't wait for the rest of the body
	defer linger(r.Context(), w, r.Body)
	w.Header().Set("Connection", "close")
	tooMuch := (*http.MaxBytesError)(nil)
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &tooMuch):
		refuse(w, http.StatusRequestEntityTooLarge, badRequest, "body_too_large", "Request body too large.")
	case errors.Is(err, errUserFull):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many large requests at once. Try again when one of them has arrived.")
	case errors.Is(err, errFull):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "server_error", "busy", "Too many large requests at once. Try again shortly.")
	default:
		refuse(w, http.StatusBadRequest, badRequest, "", "The request is incomplete.")
	}
	return nil, false
}

// linger sends an answer before the end of a body, and goes on reading. Many clients read no answer
// while they are sending, and a connection that closes on them looks broken.
func linger(ctx context.Context, w http.ResponseWriter, rest io.Reader) {
	timer, end := http.NewResponseController(w), time.Now().Add(lingerTimeout)
	if timer.Flush() != nil || timer.SetReadDeadline(end) != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { _ = timer.SetReadDeadline(time.Now()) })()
	for buf := make([]byte, 32<<10); time.Now().Before(end); {
		if _, err := rest.Read(buf); err != nil {
			return
		}
	}
}

// read reads a body of a length, negative if unknown.
func (b *body) read(from io.Reader, length int64) error {
	if length > smallBody { // reject it before reading
		if err := b.enlarge(); err != nil {
			return err
		}
	}
	b.data = make([]byte, 0, firstPiece)
	for {
		if len(b.data) == cap(b.data) {
			if err := b.grow(length); err != nil {
				return err
			}
		}
		n, err := from.Read(b.data[len(b.data):cap(b.data)])
		b.data = b.data[:len(b.data)+n]
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// grow doubles the buffer of a body. While it copies, both buffers count.
func (b *body) grow(length int64) error {
	size := int64(2 * cap(b.data))
	if whole := length + 1; length >= 0 && whole < size { // one more to see the end
		size = max(whole, int64(cap(b.data))+1)
	}
	before := b.taken
	if size > smallBody {
		if err := b.enlarge(); err != nil {
			return err
		}
		if b.proxy.held.Add(size) > b.proxy.o.Limits.Bodies {
			b.proxy.held.Add(-size)
			return errFull
		}
		b.taken += size
	}
	next := make([]byte, len(b.data), size)
	copy(next, b.data)
	b.data = next
	b.taken -= before
	b.proxy.held.Add(-before)
	return nil
}

// enlarge counts the body as a large one of its user.
func (b *body) enlarge() error {
	if !b.large && !b.proxy.pace.beginLarge(b.user) {
		return errUserFull
	}
	b.large = true
	return nil
}

// sent is the reader that the API server gets a body from. It frees the body at its end.
type sent struct {
	data []byte
	done func()
	gone atomic.Bool
}

// Read implements io.Reader.
func (s *sent) Read(p []byte) (int, error) {
	n := copy(p, s.data)
	if s.data = s.data[n:]; len(s.data) == 0 {
		s.data = nil
		_ = s.Close()
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Close frees the memory. The transport may close while it reads, so the data stays until the read
// ends.
func (s *sent) Close() error {
	if !s.gone.Swap(true) && s.done != nil {
		s.done()
	}
	return nil
}
