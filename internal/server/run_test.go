package server

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/config"
)

// A whole life: start on a port of the system's choice, a talk, a stop within ten seconds that ends
// the connections with the code for it, and a second life that knows what was said.
func TestLife(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	if a, is := r.server.Addr().(*net.TCPAddr); !is || a.Port == 0 || !a.IP.IsLoopback() {
		t.Errorf("listens on %v", r.server.Addr())
	}
	d := r.connect("tel-1", mainToken)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if m := d.message(); m.Text != "You said: hello" {
		t.Errorf("%+v", m)
	}
	d.send(&frame.Text{ID: "m2", Text: "/demo stream 5000"})
	for m := find[*frame.Message](d); m.Text == ""; m = find[*frame.Message](d) {
	}
	closed := make(chan int, 1)
	go func() { closed <- d.closed() }()
	began := time.Now()
	ok(t, r.stop())
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v to stop", took)
	}
	if code := <-closed; code != int(frame.CloseGoingAway) {
		t.Errorf("closed with %d", code)
	}
	if _, err := os.Stat(filepath.Join(r.cfg.Data, AdminSocket)); err == nil {
		t.Error("the admin socket is left behind")
	}

	r = startIn(t, dir, "MOBILE_TOKEN="+mainToken)
	d = r.connect("tel-1", mainToken)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if a := find[*frame.Accepted](d); !a.Duplicate {
		t.Error("the second life has forgotten the first one's messages")
	}
	d.send(&frame.Stop{}) // the turn that was cut runs again
	d.message()
}

// A server that was killed leaves its socket behind: the next one starts all the same. One that
// runs keeps others out.
func TestSecondServerOnTheFolder(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir)
	s, err := New(context.Background(), settings(t, dir), "2", slog.New(slog.DiscardHandler))
	if err == nil {
		s.release()
		t.Fatal("two servers on one folder")
	}
	if !strings.Contains(err.Error(), r.cfg.Data) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("error %q does not say which folder, and what to do", err)
	}
	ok(t, r.admin.Get(t.Context(), "/status", nil)) // the first one is not disturbed
	ok(t, r.stop())

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(r.cfg.Data, AdminSocket)})
	ok(t, err)
	l.SetUnlinkOnClose(false)
	ok(t, l.Close())
	startIn(t, dir)
}

// Whatever fails in New leaves nothing open: the next try with good settings works.
func TestNewThatFails(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer taken.Close()
	for name, change := range map[string]func(*config.Config){
		"port in use":  func(c *config.Config) { c.Port = taken.Addr().(*net.TCPAddr).Port },
		"no agent":     func(c *config.Config) { c.Agent = "nobody" },
		"no address":   func(c *config.Config) { c.Agent, c.APIURL = "direct", "nowhere" },
		"bad proxies":  func(c *config.Config) { c.TrustedProxies = "nonsense" },
		"tokens twice": func(c *config.Config) { c.Token, c.ExtraTokens = mainToken, "x="+mainToken },
		"bad token file": func(c *config.Config) {
			ok(t, os.MkdirAll(c.Data, 0o700))
			ok(t, os.WriteFile(filepath.Join(c.Data, "tokens"), []byte("what is this"), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			cfg := settings(t, dir)
			change(cfg)
			s, err := New(context.Background(), cfg, "1", slog.New(slog.DiscardHandler))
			if err == nil {
				s.release()
				t.Fatal("it started")
			}
			if strings.Contains(err.Error(), mainToken) || strings.Contains(err.Error(), "what is this") {
				t.Errorf("the error shows a secret: %v", err)
			}
			t.Log(err)
			_ = os.Remove(filepath.Join(cfg.Data, "tokens"))
			startIn(t, dir)
		})
	}
}

func TestModesOfFiles(t *testing.T) {
	mask := syscall.Umask(0o022)
	defer syscall.Umask(mask)
	r := start(t, "MOBILE_AGENT=relay")
	d := r.connect("tel-1", r.firstToken())
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	find[*frame.Accepted](d)
	ok(t, r.admin.Post(t.Context(), "/tokens/add", Command{Label: "second"}, nil))
	n := 0
	ok(t, filepath.WalkDir(r.cfg.Data, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		n++
		if fi.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, fi.Mode().Perm(), want)
		}
		return nil
	}))
	if n < 6 {
		t.Errorf("only %d files", n)
	}
}

// firstToken is the token that the first start made.
func (r *rig) firstToken() string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.cfg.Data, "tokens"))
	ok(r.t, err)
	for line := range strings.Lines(string(text)) {
		if token, is := strings.CutPrefix(strings.TrimSpace(line), firstLabel+"="); is {
			return token
		}
	}
	r.t.Fatalf("no token in %q", text)
	return ""
}

// The first start makes a token where none is set, once.
func TestFirstToken(t *testing.T) {
	dir := folder(t)
	r := startIn(t, dir)
	token := r.firstToken()
	if len(token) != 64 || !r.server.sources.made {
		t.Errorf("%d characters", len(token))
	}
	r.connect("tel-1", token)
	ok(t, r.stop())
	r = startIn(t, dir)
	if r.firstToken() != token || r.server.sources.made {
		t.Error("the second start made another one")
	}
	r.connect("tel-1", token)
	if strings.Contains(r.log.String(), token) {
		t.Error("the log holds the token")
	}
}

// The id and secret for Hermes are made once, for the owner only, and read again.
func TestRelayEnv(t *testing.T) {
	dir := folder(t)
	read := func() string {
		t.Helper()
		r := startIn(t, dir, "MOBILE_AGENT=relay")
		defer func() { ok(t, r.stop()) }()
		path := filepath.Join(r.cfg.Data, "relay.env")
		text, err := os.ReadFile(path)
		ok(t, err)
		fi, err := os.Stat(path)
		ok(t, err)
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("mode %v", fi.Mode())
		}
		var b strings.Builder
		r.server.Banner(&b, "hermes-mobile", false)
		for line := range strings.Lines(string(text)) {
			if name, secret, _ := strings.Cut(strings.TrimSpace(line), "="); name == "GATEWAY_RELAY_SECRET" {
				if len(secret) < 32 || strings.Contains(b.String(), secret) || strings.Contains(r.log.String(), secret) {
					t.Error("the secret is short, or shown")
				}
			}
		}
		if !strings.Contains(b.String(), path) || !strings.Contains(b.String(), "relay_url") {
			t.Errorf("the banner does not say how to connect Hermes:\n%s", b.String())
		}
		if code, _ := r.get("/relay"); code == 404 || code == 200 {
			t.Errorf("/relay without a token answers %d", code)
		}
		return string(text)
	}
	first := read()
	if !strings.Contains(first, "GATEWAY_RELAY_ID=") {
		t.Errorf("%q", first)
	}
	if again := read(); again != first {
		t.Error("made anew")
	}
	path := filepath.Join(dir, "data", "relay.env")
	ok(t, os.WriteFile(path, []byte("GATEWAY_RELAY_ID=x\n"), 0o600))
	if s, err := New(t.Context(), settings(t, dir, "MOBILE_AGENT=relay"), "1", slog.New(slog.DiscardHandler)); err == nil {
		s.release()
		t.Error("started with half of it")
	} else if !strings.Contains(err.Error(), path) {
		t.Errorf("error %v", err)
	}
}

func TestBanner(t *testing.T) {
	r := start(t, "MOBILE_PUBLIC_URL=https://phone.example", "MOBILE_PATH=/mobile")
	var b strings.Builder
	r.server.Banner(&b, "./bin/hermes-mobile", false)
	for _, want := range []string{"1.2.3", fmt.Sprintf("ws://%s/mobile", r.server.Addr()), "https://phone.example", r.cfg.Data, r.cfg.AgentWhy,
		"./bin/hermes-mobile pair", "./bin/hermes-mobile chat", filepath.Join(r.cfg.Data, "tokens")} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), r.firstToken()) {
		t.Error("it shows the token")
	}
}
