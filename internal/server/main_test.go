package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const patience = 10 * time.Second

const (
	mainToken  = "1111111111111111111111111111111111111111111111111111111111111111"
	otherToken = "2222222222222222222222222222222222222222222222222222222222222222"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// log collects what the server writes, which must never hold a secret.
type log struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// rig is a running server on a data folder of its own.
type rig struct {
	t      *testing.T
	data   string
	cfg    *config.Config
	server *Server
	admin  *Client
	log    *log
	http   *http.Client
	stop   func() error

	session pass // of the admin UI, once a test has asked as its owner
}

// folder makes a data folder with a path that is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "srv")
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// settings loads settings as the program does, from an environment.
func settings(t *testing.T, data string, environ ...string) *config.Config {
	t.Helper()
	base := []string{"MOBILE_PORT=0", "MOBILE_DATA=" + filepath.Join(data, "data"), "HERMES_HOME=" + filepath.Join(data, "none"), "MOBILE_AGENT=demo", "MOBILE_ALLOW_ALL_USERS=1"}
	if !slices.ContainsFunc(environ, func(line string) bool { return strings.HasPrefix(line, "MOBILE_PUSH") }) {
		base = append(base, "MOBILE_PUSH=off") // on without a contact, it is an issue
	}
	cfg, _, err := config.Load(config.Sources{Environ: append(base, environ...), HomeDir: data})
	ok(t, err)
	return cfg
}

func start(t *testing.T, environ ...string) *rig {
	t.Helper()
	return startIn(t, folder(t), environ...)
}

func startIn(t *testing.T, dir string, environ ...string) *rig {
	t.Helper()
	r := &rig{t: t, data: dir, cfg: settings(t, dir, environ...), log: &log{}, http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	ctx, cancel := context.WithCancel(context.Background())
	began := time.Now()
	s, err := New(ctx, r.cfg, "1.2.3", slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	ok(t, err)
	r.server, r.admin = s, NewClient(r.cfg.Data)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stopped := false
	r.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(2 * patience):
			return errors.New("the server does not stop")
		}
	}
	t.Cleanup(func() {
		ok(t, r.stop())
		for _, secret := range []string{mainToken, otherToken, adminSecret} {
			if strings.Contains(r.log.String(), secret) {
				t.Error("the log holds a token")
			}
		}
	})
	until(t, "the admin interface", func() bool { return r.admin.Get(ctx, "/status", nil) == nil })
	if d := time.Since(began); d > patience {
		t.Errorf("it took %v to start", d)
	}
	return r
}

func (r *rig) url(path string) string { return "http://" + r.server.Addr().String() + path }

// get asks for a page and returns its status and body. Headers are given as "Name: value".
func (r *rig) get(path string, headers ...string) (int, string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url(path), nil)
	ok(r.t, err)
	for _, h := range headers {
		name, v, _ := strings.Cut(h, ": ")
		req.Header.Set(name, v)
	}
	resp, err := r.http.Do(req)
	ok(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(r.t, err)
	return resp.StatusCode, string(body)
}

// device is a connected device.
type device struct {
	t     *testing.T
	ws    *websocket.Conn
	ready *frame.Ready
}

func (r *rig) dial(id, token string, headers ...string) *device {
	r.t.Helper()
	d := &device{t: r.t}
	h := http.Header{}
	for _, line := range headers {
		name, v, _ := strings.Cut(line, ": ")
		h.Set(name, v)
	}
	ws, _, err := websocket.Dial(r.t.Context(), r.url(r.cfg.Path), &websocket.DialOptions{HTTPClient: r.http, HTTPHeader: h})
	ok(r.t, err)
	ws.SetReadLimit(32 << 20)
	d.ws = ws
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	d.send(&frame.Hello{Token: token, Device: frame.Device{ID: id}})
	return d
}

// connect is dial with the ready that must follow.
func (r *rig) connect(id, token string, headers ...string) *device {
	r.t.Helper()
	d := r.dial(id, token, headers...)
	d.ready = find[*frame.Ready](d)
	return d
}

func (d *device) send(f frame.Up) {
	d.t.Helper()
	ok(d.t, d.ws.Write(d.t.Context(), websocket.MessageText, frame.EncodeUp(f)))
}

func (d *device) read() (frame.Down, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, data, err := d.ws.Read(ctx)
	if err != nil {
		return nil, err
	}
	return frame.DecodeDown(data)
}

// find passes over frames until one of this type comes.
func find[T frame.Down](d *device) T {
	d.t.Helper()
	for {
		f, err := d.read()
		ok(d.t, err)
		if got, is := f.(T); is {
			return got
		}
	}
}

// message is the next final message.
func (d *device) message() *frame.Message {
	d.t.Helper()
	for {
		if m := find[*frame.Message](d); m.Final {
			return m
		}
	}
}

// closed waits for the end and returns its close code.
func (d *device) closed() int {
	d.t.Helper()
	for {
		if _, err := d.read(); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}
