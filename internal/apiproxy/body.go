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
	// maxBody is what Hermes' API server takes.
	maxBody = 10_000_000
	// smallBody is how much of a body needs no memory of the common budget: a user has few requests at a time.
	smallBody = 128 << 10
	// largeBodies is how many larger ones of a user may be on their way at a time.
	largeBodies = 2
	// firstPiece is how much memory a body gets before anything of it came.
	firstPiece = 4 << 10
	// bodyTimeout is how long a body may take to come.
	bodyTimeout = 2 * time.Minute
	// lingerTimeout is how long a body that is not taken may go on coming.
	lingerTimeout = 5 * time.Second
)

// Why a body is not taken.
var (
	errTooLarge = errors.New("the body is too large")
	errUserFull = errors.New("the user sends too many large bodies at a time")
	errFull     = errors.New("too many large bodies come at a time")
)

// body is what a client sent, with the memory that it takes of the budget. That is given back once the API server has it.
type body struct {
	front *Proxy
	user  string
	data  []byte
	taken int64 // of the budget
	large bool  // one of the user's large ones
	once  sync.Once
}

// release gives back what the body takes.
func (b *body) release() {
	b.once.Do(func() {
		b.front.held.Add(-b.taken)
		if b.large {
			b.front.pace.endLarge(b.user)
		}
		b.data = nil
	})
}

// readBody reads what was sent, as the API server wants to know its length, or answers the request. What was announced counts for
// nothing: memory is taken as the bytes come.
func (f *Proxy) readBody(w http.ResponseWriter, r *http.Request, user string) (b *body, ok bool) {
	b = &body{front: f, user: user}
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
	_ = timer.EnableFullDuplex() // the answer does not wait for what is still to come
	defer linger(r.Context(), w, r.Body)
	w.Header().Set("Connection", "close")
	tooMuch := (*http.MaxBytesError)(nil)
	switch {
	case errors.Is(err, errTooLarge), errors.As(err, &tooMuch):
		refuse(w, http.StatusRequestEntityTooLarge, badRequest, "body_too_large", "Request body too large.")
	case errors.Is(err, errUserFull):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many large requests at once: try again when one of them has arrived.")
	case errors.Is(err, errFull):
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "server_error", "busy", "Too much is being sent at once: try again shortly.")
	default:
		refuse(w, http.StatusBadRequest, badRequest, "", "The request did not arrive whole.")
	}
	return nil, false
}

// linger sends an answer that came before the end of a body, and lets more of the body come: many clients read no answer while they
// are still sending, and a connection that is closed on them looks broken.
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

// read reads a body of a length, negative where that is not known.
func (b *body) read(from io.Reader, length int64) error {
	if length > smallBody { // it need not be read to know that it is one too many
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

// grow doubles the memory of a body. While it is moved, both the old and the new count.
func (b *body) grow(length int64) error {
	size := int64(2 * cap(b.data))
	if whole := length + 1; length >= 0 && whole < size { // and one more to see its end
		size = max(whole, int64(cap(b.data))+1)
	}
	before := b.taken
	if size > smallBody {
		if err := b.enlarge(); err != nil {
			return err
		}
		if b.front.held.Add(size) > b.front.o.Limits.Bodies {
			b.front.held.Add(-size)
			return errFull
		}
		b.taken += size
	}
	next := make([]byte, len(b.data), size)
	copy(next, b.data)
	b.data = next
	b.taken -= before
	b.front.held.Add(-before)
	return nil
}

// enlarge makes it one of the user's large bodies.
func (b *body) enlarge() error {
	if !b.large && !b.front.pace.beginLarge(b.user) {
		return errUserFull
	}
	b.large = true
	return nil
}

// sent reads a body to the API server, and lets go of it at its end.
type sent struct {
	data []byte
	done func()
	gone atomic.Bool
}

// Read returns what comes next.
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

// Close gives the memory back. The transport may close while it reads, so the text stays until that has ended.
func (s *sent) Close() error {
	if !s.gone.Swap(true) && s.done != nil {
		s.done()
	}
	return nil
}
