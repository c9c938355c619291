package server

import (
	"io"
	"net/http"
	"time"
)

// How slow a client may be. The time for headers is the HTTP server's own, that of a WebSocket is wsconn's.
const (
	bodyGrace    = 30 * time.Second // until a request's body must have come, and longer
	bodyPace     = 1 << 10          // by a second for each of these bytes
	answerStall  = time.Minute      // in which something of an answer must be taken
	answerPieces = 32 << 10
)

// unstalled ends requests whose body does not come and whose answer is not taken: without an end to it each would hold a connection for as
// long as somebody likes, and needs no token for that. What is long in coming because the server works on it is left alone.
func unstalled(next http.Handler, grace, stall time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			b := &pacedBody{ReadCloser: r.Body, rc: rc, until: time.Now().Add(grace)}
			_ = rc.SetReadDeadline(b.until) // also for what the HTTP server itself reads of it, where no handler does
			r.Body = b
		}
		_ = rc.SetWriteDeadline(time.Now().Add(stall))
		if r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r) // who takes the connection over sets its own times
			return
		}
		// Deferred, since a proxied answer that breaks off ends by a panic.
		defer func() { _ = rc.SetWriteDeadline(time.Now().Add(stall)) }() // what is still buffered
		next.ServeHTTP(&pacedAnswer{ResponseWriter: w, rc: rc, stall: stall}, r)
	})
}

// pacedBody gives a body more time with each byte that comes.
type pacedBody struct {
	io.ReadCloser
	rc    *http.ResponseController
	until time.Time
}

func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.until = b.until.Add(time.Duration(n) * time.Second / bodyPace)
	until := b.until
	if err == io.EOF {
		until = time.Time{} // from here on the connection is only watched for its end
	}
	_ = b.rc.SetReadDeadline(until)
	return n, err
}

// pacedAnswer gives each piece of an answer its time.
type pacedAnswer struct {
	http.ResponseWriter
	rc    *http.ResponseController
	stall time.Duration
}

func (a *pacedAnswer) Write(p []byte) (n int, err error) {
	for {
		_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall))
		m, err := a.ResponseWriter.Write(p[:min(len(p), answerPieces)])
		n, p = n+m, p[m:]
		if err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// FlushError and Flush send what is buffered.
func (a *pacedAnswer) FlushError() error {
	_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall))
	return a.rc.Flush()
}

func (a *pacedAnswer) Flush() { _ = a.FlushError() }

// Unwrap is for http.ResponseController.
func (a *pacedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
