package device_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

// app is a device with a loop that collects its events.
type app struct {
	*device.Device
	t    *testing.T
	mu   sync.Mutex
	evs  []device.Event
	more chan struct{}
	next int
}

func config(url string) device.Config {
	return device.Config{
		URL: url, Token: "token", Device: frame.Device{ID: "tel-1"},
		Backoff: device.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond},
	}
}

func open(t *testing.T, cfg device.Config) *app {
	t.Helper()
	a := quiet(t, cfg)
	a.listen(nil)
	return a
}

// quiet opens a device without a loop.
func quiet(t *testing.T, cfg device.Config) *app {
	t.Helper()
	d, err := device.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := &app{Device: d, t: t, more: make(chan struct{}, 1)}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), devicetest.Timeout)
		defer cancel()
		if err := d.Close(ctx); err != nil {
			t.Error("close:", err)
		}
	})
	return a
}

// listen starts the loop. A body runs for each event first.
func (a *app) listen(body func(device.Event)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev, err := range a.Events(context.Background()) {
			if err != nil {
				if !errors.Is(err, device.ErrClosed) {
					a.t.Errorf("the loop ended with %v", err)
				}
				return
			}
			if body != nil {
				body(ev)
			}
			a.mu.Lock()
			a.evs = append(a.evs, ev)
			a.mu.Unlock()
			select {
			case a.more <- struct{}{}:
			default:
			}
		}
	}()
	a.t.Cleanup(func() { a.Close(context.Background()); <-done })
}

// expect waits for the next event of a type that satisfies ok, and skips all others.
func expect[T device.Event](a *app, ok func(T) bool) T {
	a.t.Helper()
	timeout := time.After(devicetest.Timeout)
	for {
		a.mu.Lock()
		for a.next < len(a.evs) {
			ev := a.evs[a.next]
			a.next++
			if want, is := ev.(T); is && (ok == nil || ok(want)) {
				a.mu.Unlock()
				return want
			}
		}
		a.mu.Unlock()
		select {
		case <-a.more:
		case <-timeout:
			var want T
			a.t.Fatalf("no %T came; events: %+v", want, a.evs)
		}
	}
}

func all[T device.Event](a *app) (out []T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ev := range a.evs {
		if want, ok := ev.(T); ok {
			out = append(out, want)
		}
	}
	return out
}

func state(s device.State) func(device.StatusChanged) bool {
	return func(c device.StatusChanged) bool { return c.State == s }
}

func final(id string) func(device.Message) bool {
	return func(m device.Message) bool { return m.ID == id && m.Final }
}

// eventually waits for a condition that no event announces.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(devicetest.Timeout); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not reached: " + what)
		}
	}
}

func TestHelloSaysWhoWeAre(t *testing.T) {
	srv := devicetest.New(t)
	cfg := config(strings.TrimSuffix(srv.URL, "/ws")) // a path-less address means /ws
	cfg.User = frame.User{ID: "anna", Name: "Anna"}
	cfg.Tools = true
	a := open(t, cfg)
	c := srv.Accept(nil)
	h := c.Hello
	if h.Token != "token" || h.Device.ID != "tel-1" || h.User.Name != "Anna" || !slices.Equal(h.Accept, []string{frame.AcceptDelta, frame.AcceptTail, frame.AcceptTool}) || h.Resume != nil {
		t.Fatalf("hello %+v", h)
	}
	if err := a.WaitOnline(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := a.Status()
	if s.State != device.Online || s.Session != "mobile:tel-1" || s.Agent != frame.Online || !s.Approved || s.Err != nil {
		t.Fatalf("status %+v", s)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := c.Gone(); code != 1000 {
		t.Fatal("closed with", code)
	}
	if a.Status().State != device.Closed {
		t.Fatal(a.Status().State)
	}
	if _, err := a.Send(t.Context(), "late"); !errors.Is(err, device.ErrClosed) {
		t.Fatal(err)
	}
	if err := a.WaitOnline(t.Context()); !errors.Is(err, device.ErrClosed) {
		t.Fatal(err)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*device.Config){
		"no device id":   func(c *device.Config) { c.Device.ID = "" },
		"odd user id":    func(c *device.Config) { c.User.ID = "a b" },
		"no scheme":      func(c *device.Config) { c.URL = "example.com:8787" },
		"token in URL":   func(c *device.Config) { c.URL = "ws://h/ws?token=abc" },
		"bad pin":        func(c *device.Config) { c.Fingerprint = "abcd" },
		"ftp":            func(c *device.Config) { c.URL = "ftp://h/ws" },
		"no address":     func(c *device.Config) { c.URL = "ws://u:secret@h h/ws" },
		"code, no host":  func(c *device.Config) { c.URL = "https:///#pair=secret" },
		"password in it": func(c *device.Config) { c.URL = "ws://u:secret@h/ws" },
	} {
		cfg := config("ws://127.0.0.1:1")
		change(&cfg)
		_, err := device.Open(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s: opened", name)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "abc") {
			t.Errorf("%s: secret in %q", name, err)
		}
	}
}

func TestNoAccessEndsTheAttempts(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Next()
	devicetest.Expect[*frame.Hello](c)
	c.Send(&frame.Error{Code: frame.AuthFailed, Message: "the token is wrong"})
	c.Close(frame.CloseNoAccess, "")
	err := a.WaitOnline(t.Context())
	var refused *device.NoAccessError
	if !errors.As(err, &refused) || refused.Code != frame.AuthFailed || refused.Message != "the token is wrong" {
		t.Fatal(err)
	}
	srv.None(50 * time.Millisecond)

	a.Reconnect() // the person corrected it at the server
	srv.Accept(nil)
	if err := a.WaitOnline(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRevokedWhileOnline(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Accept(nil)
	c.Close(frame.CloseNoAccess, "revoked")
	expect(a, state(device.NoAccess))
	var refused *device.NoAccessError
	if !errors.As(a.Status().Err, &refused) || refused.Message != "revoked" {
		t.Fatal(a.Status().Err)
	}
	srv.None(30 * time.Millisecond)
}

func TestReplacedDoesNotFightBack(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	srv.Accept(nil).Close(frame.CloseReplaced, "")
	expect(a, state(device.Replaced))
	srv.None(30 * time.Millisecond)
	a.Reconnect()
	srv.Accept(nil)
	expect(a, state(device.Online))
}

func TestRefusedUpgrades(t *testing.T) {
	for _, status := range []int{400, 401, 403, 404} {
		srv := devicetest.New(t)
		srv.Refuse(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "say hello instead", status) })
		a := open(t, config(srv.URL))
		expect(a, state(device.NoAccess))
		var refused *device.NoAccessError
		if !errors.As(a.Status().Err, &refused) || refused.Status != status || refused.Message != "say hello instead" {
			t.Fatal(a.Status().Err)
		}
	}
	srv := devicetest.New(t)
	srv.Refuse(func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "600"); w.WriteHeader(429) })
	srv.Refuse(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502) })
	a := open(t, config(srv.URL))
	w := expect(a, state(device.Waiting))
	if left := time.Until(w.Until); left < 9*time.Minute {
		t.Fatal("Retry-After was not kept:", left)
	}
	a.Reconnect()
	srv.Accept(nil) // after the 502, by itself
	expect(a, state(device.Online))
}

// Proxies that discover their servers, for example from a container engine, answer 404 while a
// server restarts. A device that has reached the server before keeps trying, in this process and
// the next.
func TestNotFoundForAWhile(t *testing.T) {
	srv := devicetest.New(t)
	gone := func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	cfg := config(srv.URL)
	cfg.Store = device.NewMemoryStore()
	a := open(t, cfg)
	c := srv.Accept(nil)
	expect(a, state(device.Online))
	srv.Refuse(gone)
	srv.Refuse(gone)
	c.Drop()
	srv.Accept(nil)
	expect(a, state(device.Online))
	a.Close(t.Context())

	srv.Refuse(gone)
	a = open(t, cfg)
	srv.Accept(nil)
	expect(a, state(device.Online))
}

func TestGoingAwayAndTryLater(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	srv.Accept(nil).Close(frame.CloseGoingAway, "")
	srv.Accept(nil).Close(frame.CloseTryLater, "")
	c := srv.Next()
	devicetest.Expect[*frame.Hello](c)
	c.Send(&frame.Error{Code: frame.RateLimited, Message: "slower", RetryAfter: 300})
	c.Close(frame.CloseTryLater, "")
	w := expect(a, func(s device.StatusChanged) bool {
		return s.State == device.Waiting && time.Until(s.Until) > time.Minute
	})
	var said *frame.Error
	if !errors.As(w.Err, &said) || said.Code != frame.RateLimited {
		t.Fatal(w.Err)
	}
}

func TestPairing(t *testing.T) {
	srv := devicetest.New(t)
	store := device.NewMemoryStore()
	cfg := config(srv.URL)
	cfg.Token, cfg.PairCode, cfg.Store = "", "7KQ4-M2XD", store
	a := open(t, cfg)
	c := srv.Next()
	h := devicetest.Expect[*frame.Hello](c)
	if h.Pair != "7KQ4-M2XD" || h.Token != "" {
		t.Fatalf("hello %+v", h)
	}
	r := devicetest.Ready(h)
	r.Token = "own"
	c.Send(r)
	expect(a, state(device.Online))
	c.Drop()
	if c := srv.Accept(nil); c.Hello.Token != "own" || c.Hello.Pair != "" {
		t.Fatalf("hello %+v", c.Hello)
	}
	a.Close(t.Context())

	// The token was revoked: the device tries the configured pairing code, once.
	cfg.PairCode = "NEWC-ODE2"
	open(t, cfg)
	c = srv.Next()
	if h := devicetest.Expect[*frame.Hello](c); h.Token != "own" {
		t.Fatalf("hello %+v", h)
	}
	c.Send(&frame.Error{Code: frame.AuthFailed, Message: "unknown token"})
	c.Close(frame.CloseNoAccess, "")
	if c := srv.Accept(nil); c.Hello.Pair != "NEWC-ODE2" {
		t.Fatalf("hello %+v", c.Hello)
	}
}

// failing is a store that fails to store tokens on request.
type failing struct {
	device.Store
	fails atomic.Bool
}

func (s *failing) SetToken(token string) error {
	if s.fails.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.SetToken(token)
}

// The device acknowledges a new token once it is stored, and uses it in the next hello.
func TestNewToken(t *testing.T) {
	srv := devicetest.New(t)
	store := &failing{Store: device.NewMemoryStore()}
	if err := store.SetToken("old"); err != nil {
		t.Fatal(err)
	}
	store.fails.Store(true)
	cfg := config(srv.URL)
	cfg.Token, cfg.Store = "", store
	a := open(t, cfg)
	give := func(token string) *devicetest.Conn {
		c := srv.Next()
		c.Hello = devicetest.Expect[*frame.Hello](c)
		r := devicetest.Ready(c.Hello)
		r.Token = token
		c.Send(r)
		return c
	}
	c := give("lost")
	if c.Hello.Token != "old" {
		t.Errorf("hello %+v", c.Hello)
	}
	_, err := a.Send(t.Context(), "hello")
	if err != nil {
		t.Fatal(err)
	}
	devicetest.Expect[*frame.Text](c)
	if acks := c.Acks(); len(acks) > 0 {
		t.Errorf("acknowledged a token that the store rejected: %+v", acks)
	}
	store.fails.Store(false)
	c.Drop()
	c = give("new")
	eventually(t, "the token to be acknowledged", func() bool {
		acks := c.Acks()
		return len(acks) == 1 && acks[0] == (frame.Ack{Token: true})
	})
	saved, err := store.Load()
	if err != nil || saved.Token != "new" {
		t.Errorf("stored %+v, %v", saved, err)
	}
}

func TestCapabilitiesAndApproval(t *testing.T) {
	srv := devicetest.New(t)
	a := open(t, config(srv.URL))
	c := srv.Next()
	r := devicetest.Ready(devicetest.Expect[*frame.Hello](c))
	r.Approved = false
	c.Send(r)
	sent, _ := a.Send(t.Context(), "hello")
	first := devicetest.Expect[*frame.Text](c)
	c.Send(&frame.Message{ID: "p", Text: "Your code is ABCD2345", Final: true})
	expect(a, final("p"))
	if s := a.Status(); s.Approved || s.Pairing != "Your code is ABCD2345" || s.Unconfirmed != 1 {
		t.Fatalf("status %+v", s)
	}
	a.Send(t.Context(), "more")
	a.Answer(t.Context(), "old-card", "once", "")
	file, _ := a.SendFile(t.Context(), device.FileOptions{Data: make([]byte, 1<<20)})
	c.Silent(30 * time.Millisecond) // no second request for a code
	c.Send(&frame.Approved{})
	c.Send(&frame.Accepted{ID: devicetest.Expect[*frame.Answer](c).ID})
	if again := devicetest.Expect[*frame.Text](c); again.ID != first.ID {
		t.Fatal("another id after approval")
	}
	c.Send(&frame.Accepted{ID: first.ID})
	if _, err := sent.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for text, whole := false, false; !text || !whole; { // in either order
		switch f := c.Read().(type) {
		case *frame.Text:
			text = true
			c.Send(&frame.Accepted{ID: f.ID})
		case *frame.Media:
			whole = f.Part == f.Parts-1
		}
	}
	c.Send(&frame.Accepted{ID: file.ID})
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := a.Status(); !s.Approved || s.Pairing != "" {
		t.Fatalf("status %+v", s)
	}
	c.Send(&frame.CapabilitiesChanged{Agent: frame.Away})
	expect(a, func(s device.StatusChanged) bool { return s.Agent == frame.Away && !s.Capabilities.Media })
	if _, err := a.SendFile(t.Context(), device.FileOptions{Data: []byte("x")}); !errors.Is(err, device.ErrUnsupported) {
		t.Fatal(err)
	}
}
