package cert

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
)

// An authority that cannot be reached stops nothing: the state says so, and the end comes at once.
func TestAutoWithoutAnAuthority(t *testing.T) {
	w := newWorld(t, Auto)
	w.o.every, w.o.retry = 0, time.Hour
	w.o.Hosts, w.o.Host, w.o.Port, w.o.Directory = []string{"agent.example.com"}, "127.0.0.1", 1, "https://127.0.0.1:1/directory"
	c := w.open()
	stop := w.run(c)
	until(t, "the failure", func() bool { return c.State().LastError != "" })
	if st := c.State(); st.Mode != Auto || !st.NotAfter.IsZero() || st.LastErrorAt.IsZero() || !strings.Contains(st.LastError, "127.0.0.1:1") {
		t.Errorf("state %+v", st)
	}
	if !strings.Contains(c.State().String(), "no certificate yet") {
		t.Errorf("%q", c.State())
	}
	// Who has mended something need not wait.
	at := c.State().LastErrorAt
	w.clock.add(0, 0, 1)
	ok(t, c.Reload())
	until(t, "another try", func() bool { return c.State().LastErrorAt.After(at) })
	stop()
	if got := modeOf(t, w.path("")); got != 0o700 {
		t.Errorf("mode %o", got)
	}
	r := httptest.NewRecorder()
	if c.Challenge(r, httptest.NewRequest(http.MethodGet, "http://agent.example.com/.well-known/acme-challenge/x", nil)) && r.Code == http.StatusOK {
		t.Error("a challenge that nobody set is answered")
	}
	if c.Challenge(r, httptest.NewRequest(http.MethodGet, "http://agent.example.com/", nil)) {
		t.Error("a page is taken for a challenge")
	}
}

// An authority that says nothing does not hold up the end, whatever it was asked.
func TestAutoWithASilentAuthority(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	asked := make(chan net.Conn, 10)
	go func() {
		defer close(asked)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- c
		}
	}()
	defer func() {
		_ = l.Close()
		for c := range asked {
			_ = c.Close()
		}
	}()
	leaf := newWorld(t, Self).open().source.(*self).use.Load()
	for name, ask := range map[string]func(*world, *Certificates) (wait func()){
		"for a certificate": func(w *world, c *Certificates) func() { return w.run(c) },
		"for a hint when to renew": func(_ *world, c *Certificates) func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := c.source.(*auto).issuer.GetRenewalInfo(context.Background(), certmagic.Certificate{Certificate: *leaf}); err == nil {
					t.Error("there was an answer")
				}
			}()
			return func() { <-done }
		},
	} {
		w := newWorld(t, Auto)
		w.o.every = 0
		w.o.Hosts, w.o.Host, w.o.Port, w.o.Directory = []string{"agent.example.com"}, "127.0.0.1", 1, "https://"+l.Addr().String()+"/directory"
		c := w.open()
		wait := ask(w, c)
		conn := <-asked
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Close()
			wait()
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second): // certmagic's own patience is longer
			t.Error("asked " + name + " it holds up the end")
		}
		_ = conn.Close()
		<-ended
	}
}

func TestAutoRoot(t *testing.T) {
	w := newWorld(t, Auto)
	w.o.Hosts = []string{"agent.example.com"}
	w.o.RootFile = filepath.Join(t.TempDir(), "root.pem")
	if _, err := Open(w.o); err == nil || !strings.Contains(err.Error(), "MOBILE_TLS_ACME_ROOT") {
		t.Errorf("no file: %v", err)
	}
	ok(t, os.WriteFile(w.o.RootFile, []byte("x"), 0o600))
	if _, err := Open(w.o); err == nil || !strings.Contains(err.Error(), "contains no certificate") {
		t.Errorf("no certificate: %v", err)
	}
}

func TestStateInWords(t *testing.T) {
	at := time.Date(2027, 3, 4, 12, 0, 0, 0, time.Local)
	for want, s := range map[string]State{
		"off":                                   {Mode: Off},
		"files, until 2027-03-04, for a.b, c.d": {Mode: Files, NotAfter: at, Names: []string{"a.b", "c.d"}},
		"auto, no certificate yet (2027-03-04 12:00:00: why)": {Mode: Auto, LastError: "why", LastErrorAt: at},
	} {
		if s.String() != want {
			t.Errorf("%q, want %q", s, want)
		}
	}
}
