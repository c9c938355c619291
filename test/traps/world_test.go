package traps

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// patience is how long something that must happen may take. Nothing waits for it unless it fails.
const patience = 60 * time.Second

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// until waits for a condition that others bring about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// soon bounds one step of a test.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// start starts a server with the relay agent.
func start(t testing.TB, env ...string) *e2e.Server {
	t.Helper()
	return e2e.NewServer(t, append([]string{"MOBILE_LOG_LEVEL=info"}, env...)...).Start()
}

// startFor starts a server for several gateways: the devices of each, by its id. Each has its id as its secret, too.
func startFor(t testing.TB, gateways map[string]string) *e2e.Server {
	t.Helper()
	s := e2e.NewServer(t, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=", "MOBILE_LOG_LEVEL=info")
	text := "gateways:\n"
	for id, devices := range gateways {
		text += fmt.Sprintf("  - {id: %q, secret: %q, devices: %q}\n", id, secretOf(id), devices)
	}
	ok(t, os.MkdirAll(s.Data, 0o700))
	ok(t, os.WriteFile(filepath.Join(s.Data, "hermes-mobile.yaml"), []byte(text), 0o600))
	return s.Start()
}

func secretOf(id string) string { return strings.Repeat("0", 40) + id }

// config is how the gateway of a server dials, or one of several.
func config(s *e2e.Server, id string) gateway.Config {
	if id == "" {
		return gateway.Config{URL: s.Base(), ID: s.ID, Secret: s.Secret}
	}
	return gateway.Config{URL: s.Base(), ID: id, Secret: secretOf(id)}
}

// raw is a gateway's connection that has said nothing.
func raw(t testing.TB, cfg gateway.Config) *gateway.Raw {
	t.Helper()
	g := value[*gateway.Raw](t)(gateway.Dial(soon(t), cfg, time.Now()))
	t.Cleanup(g.Close)
	return g
}

// hello is raw with the hello that the server answers.
func hello(t testing.TB, cfg gateway.Config) *gateway.Raw {
	t.Helper()
	g := raw(t, cfg)
	ok(t, g.Hello(soon(t), "relay"))
	return g
}

// scripted is a gateway that keeps the contract.
func scripted(t testing.TB, cfg gateway.Config) *gateway.Gateway {
	t.Helper()
	cfg.Kind = true
	g := gateway.New(cfg)
	t.Cleanup(g.Close)
	return g
}

// take is the next event for a gateway, acknowledged, which must have this text.
func take(t testing.TB, g *gateway.Raw, text string) gateway.Event {
	t.Helper()
	e := value[gateway.Event](t)(g.Take(soon(t)))
	if e.Text != text {
		t.Fatalf("the gateway got %q, want %q", e.Text, text)
	}
	return e
}

// nothing fails when the gateway was sent anything but results, after a round trip.
func nothing(t testing.TB, g *gateway.Raw) {
	t.Helper()
	value[gateway.Result](t)(g.Do(soon(t), map[string]any{"op": "get_chat_info", "chat_id": "round-trip"}))
	for _, kind := range []string{"inbound", "interrupt_inbound", "unreadable"} {
		if n := g.Pending(kind); n != 0 {
			t.Errorf("the gateway was sent %d frames %s", n, kind)
		}
	}
}

// gone reports whether a gateway's connection has ended.
func gone(g *gateway.Raw) bool {
	select {
	case <-g.Gone():
		return true
	default:
		return false
	}
}

// ends waits until the server has closed a gateway's connection, and returns how.
func ends(t testing.TB, g *gateway.Raw) int {
	t.Helper()
	select {
	case <-g.Gone():
	case <-time.After(patience):
		t.Fatal("the connection stays")
	}
	return g.Code()
}

// settled waits until the server's memory is back under a bound, which takes a collection or two: reading it makes garbage.
func settled(t testing.TB, s *e2e.Server, bound float64) {
	t.Helper()
	now := 0.0
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if now = s.Memory(t); now < bound {
			return
		}
	}
	t.Errorf("the server holds %.0f MiB, more than %.0f", now/(1<<20), bound/(1<<20))
}

// watch samples the server's memory until the function it returns is called, which gives the most that was seen.
func watch(t testing.TB, s *e2e.Server) (most func() float64) {
	stop := make(chan struct{})
	var peak float64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			peak = max(peak, s.Memory(t))
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	var once sync.Once
	most = func() float64 {
		once.Do(func() { close(stop); wg.Wait() })
		return peak
	}
	t.Cleanup(func() { most() })
	return most
}

// socket is a phone's connection whose every frame a test writes itself.
type socket struct {
	t    testing.TB
	ws   *websocket.Conn
	http *http.Client
}

func dial(t testing.TB, s *e2e.Server) *socket {
	t.Helper()
	c := &socket{t: t, http: &http.Client{Transport: &http.Transport{}}}
	ws, _, err := websocket.Dial(soon(t), s.URL(), &websocket.DialOptions{HTTPClient: c.http})
	ok(t, err)
	c.ws = ws
	ws.SetReadLimit(-1)
	t.Cleanup(c.close)
	return c
}

func (c *socket) close() {
	_ = c.ws.CloseNow()
	c.http.CloseIdleConnections()
}

// open connects a device.
func open(t testing.TB, s *e2e.Server, id string) (*socket, *frame.Ready) {
	t.Helper()
	c := dial(t, s)
	c.send(&frame.Hello{Token: s.Token, Device: frame.Device{ID: id}})
	return c, find[*frame.Ready](c)
}

func (c *socket) raw(kind websocket.MessageType, b []byte) {
	c.t.Helper()
	ok(c.t, c.ws.Write(soon(c.t), kind, b))
}

func (c *socket) send(f frame.Up) {
	c.t.Helper()
	c.raw(websocket.MessageText, frame.EncodeUp(f))
}

// find passes over frames until one of this type comes.
func find[T frame.Down](c *socket) T {
	c.t.Helper()
	for {
		_, data, err := c.ws.Read(soon(c.t))
		ok(c.t, err)
		f, err := frame.DecodeDown(data)
		ok(c.t, err)
		if got, is := f.(T); is {
			return got
		}
	}
}

// final is the next finished message.
func (c *socket) final() *frame.Message {
	c.t.Helper()
	for {
		if m := find[*frame.Message](c); m.Final {
			return m
		}
	}
}

// closed waits for the end of the connection and returns its close code.
func (c *socket) closed() int {
	c.t.Helper()
	for {
		if _, _, err := c.ws.Read(soon(c.t)); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}

// cards lists the cards that a phone was shown from a place on.
func cards(p *e2e.Phone, mark int) (list []device.CardShown) {
	for _, ev := range p.Since(mark) {
		if c, is := ev.(device.CardShown); is && !c.Again {
			list = append(list, c)
		}
	}
	return list
}

// finals lists the texts of the finished messages from a place on.
func finals(p *e2e.Phone, mark int) (list []string) {
	for _, m := range p.Finals(mark) {
		list = append(list, m.Text)
	}
	return list
}
