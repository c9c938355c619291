package hostile

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/leak"
	"hermes-mobile/test/e2e"
)

// patience is how long something that must happen may take. Nothing waits for it unless it fails.
const patience = 90 * time.Second

// scale is a number of attackers: small for the tests of every day, large with HOSTILE=full.
func scale(small, full int) int {
	if os.Getenv("HOSTILE") == "full" {
		return full
	}
	return small
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	e2e.Tidy()
	os.Exit(leak.Status(code))
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for a condition that others bring about.
func until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// start starts a server that answers by itself, with a paired phone that has talked to it.
func start(t testing.TB, env ...string) (*e2e.Server, *e2e.Phone) {
	t.Helper()
	s := e2e.NewServer(t, append([]string{"MOBILE_LOG_LEVEL=info"}, env...)...)
	s.Agent = "demo"
	s.Start()
	p := e2e.NewPhone(t, s, "paired")
	p.Ask("before", "You said: before")
	return s, p
}

// unharmed: the paired phone is served, another one gets in, and what the attack took is given back.
func unharmed(t testing.TB, s *e2e.Server, p *e2e.Phone, before, rest float64) {
	t.Helper()
	mark := p.Mark()
	p.Ask("after", "You said: after")
	for _, ev := range p.Since(mark) {
		if name := fmt.Sprintf("%T", ev); strings.HasSuffix(name, "Disconnected") {
			t.Errorf("the phone's connection ended: %+v", ev)
		}
	}
	e2e.NewPhone(t, s, "newcomer").Ask("hello", "You said: hello")
	now := 0.0
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if now = s.Memory(t); now < before+rest {
			return
		}
	}
	t.Errorf("the server still holds %.0f MiB, %.0f before", now/(1<<20), before/(1<<20))
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

// quietLog fails when an attack has filled the log.
func quietLog(t testing.TB, s *e2e.Server) {
	t.Helper()
	if text := s.LogTail(1 << 30); len(text) > 64<<10 {
		t.Errorf("the log has grown to %d KiB, and ends with\n%s", len(text)>>10, s.LogTail(5))
	}
}

// dial opens a connection and writes what it is given.
func dial(t testing.TB, s *e2e.Server, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	ok(t, err)
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	_, err = io.WriteString(c, text)
	ok(t, err)
	return c
}

const upgrade = "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
	"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"

// ends reads until the other side has closed.
func ends(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// hello is the first frame of a device.
func hello(token, id string) string {
	return string(frame.EncodeUp(&frame.Hello{Token: token, Device: frame.Device{ID: id}}))
}

// soon bounds one step of a test.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
