package server

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stalling serves a handler to clients that may stall for a moment only.
func stalling(t *testing.T, grace, stall time.Duration, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(unstalled(h, grace, stall))
	t.Cleanup(s.Close)
	return s
}

func rawDial(t *testing.T, addr, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	ok(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_, err = io.WriteString(c, text)
	ok(t, err)
	return c
}

// A body that never comes ends its request, whether the handler reads it or not, and whatever it
// announced.
func TestBodyThatNeverComes(t *testing.T) {
	t.Parallel()
	failed := make(chan error, 8)
	s := stalling(t, 50*time.Millisecond, time.Minute, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/read" {
			_, err := io.ReadAll(r.Body)
			failed <- err
		}
		w.WriteHeader(http.StatusTeapot)
	})
	for _, path := range []string{"/read", "/unread"} {
		for _, length := range []string{"Content-Length: 100", "Content-Length: 100000000", "Transfer-Encoding: chunked"} {
			c := rawDial(t, s.Listener.Addr().String(), "POST "+path+" HTTP/1.1\r\nHost: x\r\n"+length+"\r\n\r\n1")
			if _, err := io.ReadAll(c); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "reset") {
				t.Error(err)
			} // it ends: that is all
			if path == "/read" {
				if err := <-failed; !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("%s, %s: the handler got %v", path, length, err)
				}
			}
		}
	}
}

// A body that comes slowly but comes has its time, and what follows it has no end set by it:
// neither the handler's work nor the next request on the connection.
func TestBodyThatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c := inMemory(t, 100*time.Millisecond, 100*time.Millisecond, func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			if err != nil || len(b) != 100<<10 {
				t.Errorf("%d bytes, %v", len(b), err)
			}
			select {
			case <-release:
			case <-r.Context().Done():
				t.Error("the request was ended while it was worked on")
			}
			w.WriteHeader(http.StatusTeapot)
		})
		answers := bufio.NewReader(c)
		for range 2 {
			_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 102400\r\n\r\n")
			ok(t, err)
			for range 4 {
				_, err := io.WriteString(c, strings.Repeat("x", 25<<10))
				ok(t, err)
				time.Sleep(60 * time.Millisecond) // longer than the grace altogether
			}
			time.Sleep(time.Hour) // the work takes longer than both bounds
			release <- struct{}{}
			resp, err := http.ReadResponse(answers, nil)
			ok(t, err)
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusTeapot {
				t.Error(resp.Status)
			}
		}
	})
}

// An answer that is not taken ends, and one that is taken in pieces does not.
func TestAnswerThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := make(chan error, 1)
		h := func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/events" {
				for range 4 {
					_, _ = io.WriteString(w, "event")
					ok(t, http.NewResponseController(w).Flush())
					time.Sleep(150 * time.Millisecond)
				}
				return
			}
			_, err := w.Write(make([]byte, 64<<20))
			wrote <- err
		}
		_, err := io.WriteString(inMemory(t, time.Minute, 100*time.Millisecond, h), "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		ok(t, err)
		if err := <-wrote; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("nobody takes it: %v", err)
		}
		c := inMemory(t, time.Minute, 100*time.Millisecond, h)
		_, err = io.WriteString(c, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
		ok(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		ok(t, err)
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != strings.Repeat("event", 4) {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// inMemory is a connection to a handler as that of stalling has them, in a test whose time stands
// still while anybody works.
func inMemory(t *testing.T, grace, stall time.Duration, h http.HandlerFunc) net.Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	l := &single{conns: make(chan net.Conn, 1), closed: make(chan struct{}), addr: theirs.LocalAddr()}
	l.conns <- theirs
	s := &http.Server{Handler: unstalled(h, grace, stall)}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = s.Close()
		<-ended
	})
	return ours
}

// single listens for one connection, which is there.
type single struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (l *single) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *single) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *single) Addr() net.Addr { return l.addr }
