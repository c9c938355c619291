//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/hermes"
)

// TestCommandAfterAStandstill lets the gateway's process stand still at the very moment when it has said that a turn is over
// and holds its session still, for longer than the server leaves between a turn and a command. A command that met the held
// session would make the gateway deaf for half a minute and more, and take the answer to its question for too late.
func TestCommandAfterAStandstill(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		over := func(a action) bool { return a.Op == "react" && a.Emoji == "✅" && !a.Remove }
		if v == hermes.V019 {
			over = func(a action) bool {
				return a.Op == "send" && a.Metadata.Notify && strings.Contains(a.Content, "second")
			}
		}
		var w *world
		var pid atomic.Int64 // of the gateway, when it is to stand still
		stood := make(chan struct{})
		var acks atomic.Int64
		asked := make(chan int64, 10) // what was acknowledged when a question came
		see := func(f said) {
			switch a := f.Action; {
			case f.Type == "inbound_ack":
				acks.Add(1)
			case a.Op == "prompt", a.Op == "send" && strings.Contains(a.Content, "/cancel"):
				asked <- acks.Load()
			case over(a):
				if n := int(pid.Swap(0)); n != 0 {
					_ = syscall.Kill(n, syscall.SIGSTOP)
					close(stood)
				}
			}
		}
		w = newWorld(t, v, func(s *hermes.Setup) { s.RelayURL = seen(t, s.RelayURL, see) })
		p := w.phone(t, "new")
		p.Ask("FM:text(first)", "first")
		p.Idle()
		before := p.history()
		again := func() { _ = syscall.Kill(w.gateway.Pid(), syscall.SIGCONT) }
		t.Cleanup(again)
		pid.Store(int64(w.gateway.Pid()))
		p.Ask("FM:text(second)", "second")
		p.Idle()
		select {
		case <-stood:
		case <-time.After(patience):
			t.Fatal("the gateway never said that the turn is over")
		}
		mark, acked := p.Mark(), acks.Load()
		p.Say("/new")
		time.Sleep(3 * time.Second) // it stands still for longer than a command waits where the gateway is quick
		again()
		if w.newer() {
			if done := p.Choose(p.Card(mark, frame.SlashConfirm), "once", ""); done.OptionID != "once" || done.Expired {
				t.Errorf("the card ended as %+v", done)
			}
		} else {
			p.Final(mark, "the question", func(m device.Message) bool { return strings.Contains(m.Text, "/cancel") })
			p.Say("/approve")
		}
		p.Idle()
		if after := p.history(); after >= before {
			t.Errorf("after /new the model was sent %d messages, %d before", after, before)
		}
		// A gateway that is deaf asks from within the reading of the command, so before it says that it has it.
		if n := <-asked; n == acked {
			t.Errorf("the gateway was deaf:\n%s", w.server.LogTail(200))
		}
	})
}

// said is what a gateway says to the server, as far as this test looks.
type said struct {
	Type   string
	Action action
}

type action struct {
	Op, Emoji, Content string
	Remove             bool
	Metadata           struct{ Notify bool }
}

// seen carries the bytes between gateways and the server, and shows what a gateway says before it goes on.
func seen(t testing.TB, server string, see func(said)) (address string) {
	t.Helper()
	to, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); work.Wait() })
	work.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", to.Host)
			if err != nil {
				_ = down.Close()
				continue
			}
			work.Go(func() {
				_, _ = io.Copy(down, up)
				_ = down.Close()
			})
			work.Go(func() {
				_, _ = io.Copy(up, io.TeeReader(down, &frames{see: see}))
				_ = up.Close()
			})
		}
	})
	return "http://" + l.Addr().String()
}

// frames reads the WebSocket messages out of what a client sends after its request.
type frames struct {
	see      func(said)
	upgraded bool
	rest     []byte
}

func (f *frames) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	if !f.upgraded {
		end := bytes.Index(f.rest, []byte("\r\n\r\n"))
		if end < 0 {
			return len(p), nil
		}
		f.upgraded, f.rest = true, f.rest[end+4:]
	}
	for {
		r := bytes.NewReader(f.rest)
		h, err := ws.ReadHeader(r)
		if err != nil || int64(r.Len()) < h.Length {
			return len(p), nil
		}
		at := len(f.rest) - r.Len()
		payload := bytes.Clone(f.rest[at : at+int(h.Length)])
		ws.Cipher(payload, h.Mask, 0)
		f.rest = f.rest[at+int(h.Length):]
		for line := range bytes.Lines(payload) {
			var m said
			if json.Unmarshal(line, &m) == nil {
				f.see(m)
			}
		}
	}
}
