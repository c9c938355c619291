package cert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// log collects what is logged.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), text)
}

// clock is a time that a test moves.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(years, months, days int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.AddDate(years, months, days)
}

// world is what a test opens certificates in.
type world struct {
	t     *testing.T
	o     Options
	log   *log
	clock *clock
}

func newWorld(t *testing.T, mode string) *world {
	w := &world{t: t, log: &log{}, clock: &clock{t: time.Now()}}
	w.o = Options{Mode: mode, Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), now: w.clock.now,
		every: time.Millisecond, names: func() []string { return []string{"localhost", "127.0.0.1"} }}
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.o.Data, Folder, name) }

func (w *world) open() *Certificates {
	w.t.Helper()
	c, err := Open(w.o)
	ok(w.t, err)
	w.t.Cleanup(c.Close)
	return c
}

// run runs until the test ends, or until the function it returns is called.
func (w *world) run(c *Certificates) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-done
	}
	w.t.Cleanup(stop)
	return stop
}

// shown is the chain that a phone sees.
func shown(t *testing.T, c *Certificates) []*x509.Certificate {
	t.Helper()
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	var work sync.WaitGroup
	work.Go(func() { _ = tls.Server(server, c.TLS()).Handshake() })
	conn := tls.Client(client, &tls.Config{InsecureSkipVerify: true, ServerName: "any.test", NextProtos: []string{"h2", "http/1.1"}})
	ok(t, conn.Handshake())
	work.Wait()
	st := conn.ConnectionState()
	if st.NegotiatedProtocol != "http/1.1" {
		t.Errorf("a browser is offered %q", st.NegotiatedProtocol)
	}
	return st.PeerCertificates
}

func modeOf(t *testing.T, path string) os.FileMode {
	t.Helper()
	fi, err := os.Stat(path)
	ok(t, err)
	return fi.Mode().Perm()
}
