package e2e

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// TestNeverTwice breaks the connection, the server and the gateway just when a message has reached a gateway that would run it
// again, and before the server hears that it has. The model must be asked once, and the person hears what became of it.
func TestNeverTwice(t *testing.T) {
	t.Parallel()
	for _, v := range []hermes.Version{hermes.V019, hermes.V0200} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			var brake brake
			w := newWorld(t, v, func(s *hermes.Setup) { s.RelayURL = brake.stand(t, s.RelayURL) })
			for name, break_ := range map[string]func(){
				"link lost":      func() {},
				"server killed":  func() { w.server.Kill(); w.server.Start() },
				"gateway killed": func() { w.gateway.Kill(); w.gateway.Run() },
			} {
				t.Run(name, func(t *testing.T) {
					p := w.phone(t, strings.ReplaceAll(name, " ", "-"))
					mark, text := p.Mark(), "Pay once, "+name+" FM:hang(5)"
					caught := brake.at(text)
					id := p.Submit(text).ID
					<-caught
					w.asked(t, text)
					brake.cut()
					break_()
					p.Online()
					m := p.Final(mark, "what became of it", func(m device.Message) bool {
						return m.ReplyTo == id && (m.Text == "late" || strings.Contains(m.Text, "It isn't known whether the agent got this message"))
					})
					t.Logf("the person was told %q", m.Text)
					// A gateway of 0.19 that is slow to take up the turn that was cut names no message in what it says then.
					p.Say("And now FM:text(after " + name + ")")
					p.Final(mark, "the next answer", func(m device.Message) bool { return m.Text == "after "+name })
					p.Idle()
					ran := 0
					for _, r := range w.model.Requests() {
						if r.LastUser() == text {
							ran++
						}
						in := 0
						for _, m := range r.Messages {
							if m.Role == "user" && strings.Contains(m.Text, text) {
								in++
							}
						}
						if in > 1 {
							t.Errorf("the model saw the message %d times in one conversation", in)
						}
					}
					if ran != 1 {
						t.Errorf("the model was asked %d times", ran)
					}
				})
			}
		})
	}
}

// brake stands between gateways and a server. From a text of the server's on it lets nothing of the gateway pass, until it cuts the connection.
type brake struct {
	mu    sync.Mutex
	text  []byte
	seen  chan struct{}
	gone  chan struct{}
	conns []net.Conn
}

// at arms it, and returns what is closed when the text has gone to the gateway.
func (b *brake) at(text string) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text, b.seen, b.gone = []byte(text), make(chan struct{}), make(chan struct{})
	return b.seen
}

// cut ends the connections.
func (b *brake) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.conns {
		_ = c.Close()
	}
	b.conns = nil
	if b.gone != nil {
		close(b.gone)
		b.gone = nil
	}
}

func (b *brake) stand(t testing.TB, server string) (address string) {
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
	t.Cleanup(func() { _ = l.Close(); b.cut(); work.Wait() })
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
			b.mu.Lock()
			b.conns = append(b.conns, down, up)
			b.mu.Unlock()
			work.Go(func() {
				_, _ = io.Copy(down, io.TeeReader(up, &watcher{b: b}))
				_ = down.Close()
			})
			work.Go(func() {
				_, _ = io.Copy(up, &gate{b: b, from: down})
				_ = up.Close()
			})
		}
	})
	return "http://" + l.Addr().String()
}

// watcher looks at what the server says before the gateway gets it.
type watcher struct {
	b    *brake
	rest []byte
}

func (w *watcher) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	if len(w.b.text) > 0 && bytes.Contains(w.rest, w.b.text) {
		w.b.text = nil
		close(w.b.seen)
	}
	w.rest = w.rest[max(0, len(w.rest)-4096):]
	return len(p), nil
}

// gate reads what a gateway says, and holds it while the brake is on.
type gate struct {
	b    *brake
	from io.Reader
}

func (g *gate) Read(p []byte) (int, error) {
	n, err := g.from.Read(p)
	g.b.mu.Lock()
	held := g.b.gone
	if g.b.text != nil {
		held = nil // the text has not come yet
	}
	g.b.mu.Unlock()
	if held != nil {
		<-held
		return 0, io.EOF
	}
	return n, err
}
