package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/demo"
	"hermes-mobile/internal/connect"
	"hermes-mobile/internal/connect/connecttest"
	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const (
	token    = "token-that-nobody-may-see"
	patience = 20 * time.Second
)

var hostKey = gateway.NewSecret(strings.Repeat("k", 40))

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// journal collects the log of the app.
type journal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.b.String()
}

// rig is a running app and a browser that has opened it.
type rig struct {
	*App
	t      *testing.T
	dir    string
	log    *journal
	http   *http.Client
	seen   strings.Builder // every answer that the page got
	stop   func()
	agents []agent.Agent
	mu     sync.Mutex
}

// folder creates a data folder with a path that is short enough for a socket.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "app")
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func options(dir string, log io.Writer, gateways ...*connecttest.Gateway) Options {
	return Options{Data: dir, Version: "1.2.3", Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})), Key: hostKey,
		RootCAs: connecttest.Roots(gateways...)}
}

func start(t *testing.T, dir string, gateways ...*connecttest.Gateway) *rig {
	t.Helper()
	return begin(t, dir, false, gateways...)
}

// begin starts an app with the direct agent, or with the demo agent instead.
func begin(t *testing.T, dir string, scripted bool, gateways ...*connecttest.Gateway) *rig {
	t.Helper()
	r := &rig{t: t, dir: dir, log: &journal{}}
	jar, err := cookiejar.New(nil)
	ok(t, err)
	r.http = &http.Client{Jar: jar, Transport: &http.Transport{}}
	o := options(dir, r.log, gateways...)
	if scripted {
		o.Agent = func(p Parts) agent.Agent {
			r.mu.Lock()
			defer r.mu.Unlock()
			a := demo.New(p.Files, p.Log)
			r.agents = append(r.agents, a)
			return a
		}
	}
	r.App, err = New(context.Background(), o)
	ok(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		r.http.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the app ended with %v", err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// enter opens the page as a browser does.
func (r *rig) enter() {
	r.t.Helper()
	resp, err := r.http.Get(r.Link())
	ok(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(r.t, err)
	if resp.StatusCode != http.StatusOK || resp.Request.URL.String() != r.Origin()+"/" || !strings.Contains(string(body), `name="hermes-app" content="1"`) {
		r.t.Fatalf("%d at %s: %.300s", resp.StatusCode, resp.Request.URL, body)
	}
}

// ask sends a request as the page does.
func ask[T any](r *rig, method, path string, body any) T {
	r.t.Helper()
	data, err := json.Marshal(body)
	ok(r.t, err)
	req, err := http.NewRequest(method, r.Origin()+path, bytes.NewReader(data))
	ok(r.t, err)
	req.Header.Set("Origin", r.Origin())
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	ok(r.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	ok(r.t, err)
	r.seen.Write(answer)
	var out T
	if err := json.Unmarshal(answer, &out); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return out
}

type do map[string]any

func (r *rig) setUp(steps ...do) connect.State {
	r.t.Helper()
	var s connect.State
	for _, step := range steps {
		s = ask[connect.State](r, http.MethodPost, "/app/setup", step)
	}
	return s
}

func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// chatting opens a device with the app's own client and sends a message. It returns the reply, or the
// error.
func (r *rig) chatting(text string) string {
	r.t.Helper()
	code, err := r.PairingCode(r.t.Context())
	if err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := r.Client()
	defer client.CloseIdleConnections()
	d, err := device.Open(ctx, device.Config{URL: r.Address(), PairCode: code, HTTPClient: client, Device: frame.Device{ID: "terminal-" + code[:4], Name: "t"}})
	if err != nil {
		return err.Error()
	}
	defer d.Close(ctx)
	if _, err = d.Send(ctx, text); err != nil {
		return err.Error()
	}
	for e, err := range d.Events(ctx) {
		if err != nil {
			return err.Error()
		}
		if m, isMessage := e.(device.Message); isMessage && m.Final {
			return m.Text
		}
	}
	return "no reply"
}

// The app connects for the first time, chats, and does so again at the next start. Its secrets are only
// in the vault.
func TestSetupToChat(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	dir := folder(t)
	r := start(t, dir, g)
	r.enter()
	if s := ask[connect.State](r, http.MethodGet, "/app/state", nil); s.Step != connect.Welcome {
		t.Fatalf("%+v", s)
	}
	s := r.setUp(do{"do": "begin"}, do{"do": "remote", "remote": g.URL}, do{"do": "local", "local": ""}, do{"do": "auth", "auth": "bearer", "secret": token}, do{"do": "test"})
	if s.Step != connect.Done || !s.Result.Passed {
		t.Fatalf("%+v %+v", s, s.Result)
	}
	if got := r.chatting("hello"); !strings.Contains(got, "hello") {
		t.Errorf("the reply is %q", got)
	}
	until(t, "a route", func() bool {
		d := ask[Diagnostics](r, http.MethodGet, "/app/diagnostics", nil)
		return d.Gateway != nil && d.Gateway.Route != nil
	})
	d := ask[Diagnostics](r, http.MethodPost, "/app/reconnect", do{})
	for _, want := range []string{"1.2.3", "route: remote", "0.22.0", "session_list", "credentials: key, ready"} {
		if !strings.Contains(d.Text, want) {
			t.Errorf("diagnostics have no %q:\n%s", want, d.Text)
		}
	}
	if host := strings.TrimPrefix(g.URL, "https://"); strings.Contains(d.Text, host) {
		t.Errorf("diagnostics name the host:\n%s", d.Text)
	}
	ask[any](r, http.MethodPost, "/app/foreground", do{})
	port := r.Port()
	link := r.Link()
	r.stop()

	again := start(t, dir, g)
	if again.Port() != port {
		t.Errorf("the port was %d and is %d: the page's history is lost", port, again.Port())
	}
	again.enter()
	if s := ask[connect.State](again, http.MethodGet, "/app/state", nil); s.Step != connect.Done {
		t.Errorf("the next start is at %s", s.Step)
	}
	if got := again.chatting("again"); !strings.Contains(got, "again") {
		t.Errorf("the reply is %q", got)
	}
	again.stop()
	u, err := url.Parse(link)
	ok(t, err)
	texts := map[string]string{"the log": r.log.String() + again.log.String(), "the answers": r.seen.String() + again.seen.String(), "diagnostics": d.Text}
	ok(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		texts[entry.Name()] = string(data)
		return err
	}))
	for where, text := range texts {
		for _, secret := range []string{token, hostKey.Reveal(), u.Query().Get("key")} {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is in %s", where)
			}
		}
	}
	if len(texts) < 6 {
		t.Errorf("only %d files were looked through", len(texts))
	}
}

// Replacing the agent during a turn ends that turn, and the next message goes to the new agent.
func TestAnotherGateway(t *testing.T) {
	t.Parallel()
	g, other := connecttest.Start(t), connecttest.Start(t)
	r := begin(t, folder(t), true, g, other)
	r.enter()
	steps := func(g *connecttest.Gateway) []do {
		return []do{{"do": "remote", "remote": g.URL}, {"do": "local"}, {"do": "auth", "auth": "none"}, {"do": "test"}}
	}
	r.setUp(append([]do{{"do": "begin"}}, steps(g)...)...)
	code, err := r.PairingCode(t.Context())
	ok(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	client := r.Client()
	defer client.CloseIdleConnections()
	d, err := device.Open(ctx, device.Config{URL: r.Address(), PairCode: code, HTTPClient: client, Device: frame.Device{ID: "t", Name: "t"}})
	ok(t, err)
	defer d.Close(ctx)
	_, err = d.Send(ctx, "/demo approval")
	ok(t, err)
	said := false
	for e, err := range d.Events(ctx) {
		ok(t, err)
		switch e := e.(type) {
		case device.CardShown:
			if !said { // a turn is open now
				said = true
				if s := r.setUp(append([]do{{"do": "edit"}}, steps(other)...)...); s.Step != connect.Done {
					t.Fatalf("%+v", s)
				}
				_, err := d.Send(ctx, "to the new one")
				ok(t, err)
			}
		case device.Message:
			if e.Final && strings.Contains(e.Text, "to the new one") {
				if r.mu.Lock(); len(r.agents) != 2 {
					t.Errorf("there were %d agents", len(r.agents))
				}
				r.mu.Unlock()
				return
			}
		}
	}
	t.Fatal("no reply of the new one")
}

// The app sends nothing to an agent before it is connected. Messages from before wait.
func TestBeforeSetup(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t)
	r := start(t, folder(t), g)
	r.enter()
	done := make(chan string, 1)
	go func() { done <- r.chatting("early") }() // it ends by itself
	until(t, "the device", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		url, err := Running(ctx, r.dir)
		return err == nil && strings.HasPrefix(url, r.Origin()+enterPath)
	})
	if len(g.Seen()) > 0 {
		t.Error("the gateway was asked:", g.Seen())
	}
	r.setUp(do{"do": "begin"}, do{"do": "remote", "remote": g.URL}, do{"do": "local"}, do{"do": "auth", "auth": "none"}, do{"do": "test"})
	if got := <-done; !strings.Contains(got, "early") {
		t.Errorf("the reply is %q", got)
	}
}

// If the gateway rejects the credential at a later start, setup opens at the step that asks for it.
func TestRefusedLater(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	dir := folder(t)
	r := start(t, dir, g)
	r.enter()
	r.setUp(do{"do": "begin"}, do{"do": "remote", "remote": g.URL}, do{"do": "local"}, do{"do": "auth", "auth": "bearer", "secret": token}, do{"do": "test"})
	r.stop()
	g.SetToken("rotated-token")
	r = start(t, dir, g)
	r.enter()
	until(t, "the question for the credential", func() bool {
		return ask[connect.State](r, http.MethodGet, "/app/state", nil).Step == connect.Auth
	})
	if s := r.setUp(do{"do": "auth", "auth": "bearer", "secret": "rotated-token"}, do{"do": "test"}); s.Step != connect.Done {
		t.Errorf("%+v", s)
	}
}

// The same happens if the gateway rejects the credential while the app runs. Messages from meanwhile
// are answered afterwards.
func TestRefusedWhileRunning(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	r := start(t, folder(t), g)
	r.enter()
	r.setUp(do{"do": "begin"}, do{"do": "remote", "remote": g.URL}, do{"do": "local"}, do{"do": "auth", "auth": "bearer", "secret": token}, do{"do": "test"})
	if got := r.chatting("before"); !strings.Contains(got, "before") {
		t.Fatalf("the reply is %q", got)
	}
	g.SetToken("rotated-token")
	done := make(chan string, 1)
	go func() { done <- r.chatting("meanwhile") }()
	until(t, "the question for the credential", func() bool {
		return ask[connect.State](r, http.MethodGet, "/app/state", nil).Step == connect.Auth
	})
	if s := r.setUp(do{"do": "auth", "auth": "bearer", "secret": "rotated-token"}, do{"do": "test"}); s.Step != connect.Done {
		t.Errorf("%+v", s)
	}
	if got := <-done; got == "no reply" {
		t.Error("what was written meanwhile was not answered")
	}
	if got := r.chatting("after"); !strings.Contains(got, "after") {
		t.Errorf("the reply is %q", got)
	}
}

func TestSecondApp(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	r := start(t, dir)
	if _, err := New(context.Background(), options(dir, io.Discard)); !errors.Is(err, ErrRunning) {
		t.Fatalf("a second app: %v", err)
	}
	link, err := Running(context.Background(), dir)
	ok(t, err)
	resp, err := r.http.Get(link)
	ok(t, err)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("its page: %s", resp.Status)
	}
	if d, err := DiagnoseFolder(context.Background(), options(dir, io.Discard)); err != nil || d.Started.IsZero() {
		t.Errorf("diagnostics of the one that runs: %+v %v", d, err)
	}
}

func TestDiagnoseStopped(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	dir := folder(t)
	if d, err := DiagnoseFolder(context.Background(), options(dir, io.Discard, g)); err != nil || d.Step != connect.Welcome || !strings.Contains(d.Text, "no gateway") {
		t.Errorf("before connecting: %+v %v", d, err)
	}
	r := start(t, dir, g)
	r.enter()
	r.setUp(do{"do": "begin"}, do{"do": "remote", "remote": g.URL}, do{"do": "local"}, do{"do": "auth", "auth": "bearer", "secret": token}, do{"do": "test"})
	r.stop()
	d, err := DiagnoseFolder(context.Background(), options(dir, io.Discard, g))
	if err != nil || d.Gateway == nil || d.Gateway.Route == nil || strings.Contains(d.Text, token) {
		t.Errorf("%+v %v", d, err)
	}
}

// With a passphrase, diagnostics ask a user who is present for it. Without one, they say what to do.
func TestDiagnoseUnderAPassphrase(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	o := options(folder(t), io.Discard, g)
	o.Key, o.NoKeyring = gateway.Secret{}, true
	_, setup, err := open(o, nil)
	ok(t, err)
	for _, a := range []connect.Action{{Do: connect.Begin}, {Do: connect.SetRemote, Remote: g.URL}, {Do: connect.SetLocal}, {Do: connect.SetAuth, Auth: gateway.AuthBearer, Secret: gateway.NewSecret(token)},
		{Do: connect.Open, Secret: gateway.NewSecret("correct horse")}, {Do: connect.TestNow}} {
		if _, err := setup.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := DiagnoseFolder(t.Context(), o); err != nil || d.Gateway != nil || !strings.Contains(d.Text, "the stored credentials are locked; start hermes-mobile app") {
		t.Errorf("%+v %v", d, err)
	}
	say := func(s string) func(context.Context) (gateway.Secret, error) {
		return func(context.Context) (gateway.Secret, error) { return gateway.NewSecret(s), nil }
	}
	o.Passphrase = say("another horse")
	if _, err := DiagnoseFolder(t.Context(), o); err == nil || strings.Contains(err.Error(), "horse") {
		t.Errorf("a wrong passphrase: %v", err)
	}
	o.Passphrase = say("correct horse")
	if d, err := DiagnoseFolder(t.Context(), o); err != nil || d.Gateway == nil || d.Gateway.Route == nil || strings.Contains(d.Text, "horse") {
		t.Errorf("%+v %v", d, err)
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	take := func(asked int) (net.Listener, int) {
		l, port, err := listen(dir, asked)
		ok(t, err)
		t.Cleanup(func() { _ = l.Close() })
		return l, port
	}
	l, first := take(0)
	if host, _, _ := net.SplitHostPort(l.Addr().String()); host != "127.0.0.1" {
		t.Error("it listens on", host)
	}
	_, other := take(0) // the first is taken
	if other == first {
		t.Fatal("one port twice")
	}
	ok(t, l.Close())
	if _, again := take(0); again != first {
		t.Errorf("the port was %d and is %d", first, again)
	}
	if _, _, err := listen(dir, other); err == nil {
		t.Error("a port that is taken was given")
	}
}
