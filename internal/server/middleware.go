package server

import (
	"io"
	"net/http"
	"time"
)

// Limits on slow clients. The timeout for headers is the HTTP server's own, those of a WebSocket
// are wsconn's.
const (
	bodyGrace    = 30 * time.Second // for a request's body, and longer
	bodyPace     = 1 << 10          // by a second for each of these bytes
	answerStall  = time.Minute      // in which the client must take something of an answer
	answerPieces = 32 << 10
)

// unstalled ends requests whose body doesn't arrive or whose answer the client doesn't read.
// Without an end, each would hold a connection for as long as the client likes, and needs no token
// for it. A request that takes long because the server works on it isn't affected.
func unstalled(next http.Handler, grace, stall time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if r.Body != nil && r.Body != http.NoBody {
			b := &pacedBody{ReadCloser: r.Body, rc: rc, until: time.Now().Add(grace)}
			_ = rc.SetReadDeadline(b.until) // also for the rest of the body, which the HTTP server reads itself
			r.Body = b
		}
		_ = rc.SetWriteDeadline(time.Now().Add(stall))
		if r.Header.Get("Upgrade") != "" {
			next.ServeHTTP(w, r) // whoever takes the connection over sets its own deadlines
			return
		}
		// Deferred, because a proxied answer that breaks off ends with a panic.
		defer func() { _ = rc.SetWriteDeadline(time.Now().Add(stall)) }() // for what is still buffered
		next.ServeHTTP(&pacedAnswer{ResponseWriter: w, rc: rc, stall: stall}, r)
	})
}

// pacedBody extends the deadline of a body with each byte that arrives.
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
		until = time.Time{} // from here on, reads only detect the end of the connection
	}
	_ = b.rc.SetReadDeadline(until)
	return n, err
}

// pacedAnswer gives each piece of an answer a deadline.
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

// FlushError sends buffered data.
func (a *pacedAnswer) FlushError() error {
	_ = a.rc.SetWriteDeadline(time.Now().Add(a.stall))
	return a.rc.Flush()
}

// Flush implements http.Flusher.
func (a *pacedAnswer) Flush() { _ = a.FlushError() }

// Unwrap implements the interface of http.ResponseController.
func (a *pacedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// unambiguous closes connections after requests whose end a proxy may have seen elsewhere: a body
// with Transfer-Encoding, which may have had a Content-Length that net/http drops, and HTTP/1.0,
// which has no such bodies. The bytes that follow could be a request smuggled past the proxy, so
// the server doesn't read them (RFC 9112 §6.1).
func unambiguous(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
