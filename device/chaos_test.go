package device_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// fault tells what happens to one TCP connection: after so many bytes, both ways together, it drops
// or goes silent.
type fault struct {
	after int
	hang  bool
}

// proxy is a bad network before a server. The n-th connection has the n-th fault; connections after
// the last fault have none.
type proxy struct {
	net.Listener
	to     string
	mu     sync.Mutex
	faults []fault
	conns  []net.Conn
	all    sync.WaitGroup
}

func newProxy(to string, faults []fault) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	p := &proxy{Listener: l, to: to, faults: faults}
	p.all.Go(p.serve)
	return p
}

func (p *proxy) serve() {
	for {
		c, err := p.Accept()
		if err != nil {
			return
		}
		s, err := net.Dial("tcp", p.to)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		f := fault{after: 1 << 40}
		if len(p.faults) > 0 {
			f, p.faults = p.faults[0], p.faults[1:]
		}
		p.conns = append(p.conns, c, s)
		p.mu.Unlock()
		left := &atomic.Int64{}
		left.Store(int64(f.after))
		for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
			p.all.Go(func() { pipe(way[0], way[1], left, f.hang) })
		}
	}
}

func pipe(from, to net.Conn, left *atomic.Int64, hang bool) {
	defer func() {
		if !hang || left.Load() > 0 {
			from.Close()
			to.Close()
		}
	}()
	buf := make([]byte, 1<<10)
	for {
		n, err := from.Read(buf)
		rest := left.Add(int64(-n))
		if rest < 0 && hang {
			io.Copy(io.Discard, from) // the packets go nowhere, and nobody is told
			return
		}
		if rest < 0 {
			n = max(n+int(rest), 0) // cut in the middle of a frame
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil || rest < 0 {
			return
		}
	}
}

func (p *proxy) stop() {
	p.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
}

// model is a small but complete server, with outbox, cursor, acks and deduplication.
type model struct {
	mu       sync.Mutex
	out      [][]frame.Down // durable, by seq from 1; nil once it was forgotten
	got      []string       // texts accepted, in order
	ids      map[string]bool
	files    map[string][]byte
	live     *websocket.Conn
	sent     int // frames of out written on live
	told     int64
	problems []string
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ws, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer ws.CloseNow()
	ws.SetReadLimit(frame.MaxFrame)
	ctx := context.Background()
	f := m.read(ctx, ws)
	if f == nil {
		return
	}
	hello, ok := f.(*frame.Hello)
	if !ok {
		m.problem("first frame", fmt.Sprintf("%T", f))
		return
	}
	m.mu.Lock()
	if m.live != nil {
		go m.live.Close(4409, "")
	}
	m.live = ws
	span := frame.Span{Epoch: "e", From: 1, To: int64(len(m.out))}
	if hello.Resume != nil {
		span.From = hello.Resume.Seq + 1
		m.forget(hello.Resume.Seq)
	}
	ready := &frame.Ready{Protocol: 1, Approved: true, Resume: span, Agent: frame.Online,
		Capabilities: frame.Capabilities{Accepted: true, Resume: true, Media: true, Audio: true, ChunkBytes: 8 << 10}}
	m.write(ctx, ws, ready)
	m.sent = int(span.From - 1)
	m.flush(ctx)
	m.mu.Unlock()
	for {
		f := m.read(ctx, ws)
		if f == nil {
			return
		}
		m.mu.Lock()
		switch f := f.(type) {
		case *frame.Text:
			m.accept(ctx, ws, f.ID, f.Text)
		case *frame.Media:
			if f.Part == 0 {
				m.files[f.ID] = nil
			}
			m.files[f.ID] = append(m.files[f.ID], f.Data...)
			if f.Part == f.Parts-1 {
				m.accept(ctx, ws, f.ID, fmt.Sprintf("file %x", sha256.Sum256(m.files[f.ID])))
			}
		case *frame.Ack:
			m.forget(f.Seq)
		}
		m.mu.Unlock()
	}
}

// read returns nil at the end of the connection. A malformed message is the client's fault only
// when another one follows: when the connection breaks inside a message, the library returns its
// beginning as a whole one.
func (m *model) read(ctx context.Context, ws *websocket.Conn) frame.Up {
	_, data, err := ws.Read(ctx)
	if err != nil {
		return nil
	}
	f, err := frame.DecodeUp(data)
	if err == nil {
		return f
	}
	if _, _, end := ws.Read(ctx); end == nil {
		m.problem(err.Error(), string(data))
	}
	return nil
}

func (m *model) problem(s ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.problems = append(m.problems, strings.Join(s, ": "))
}

func (m *model) accept(ctx context.Context, ws *websocket.Conn, id, text string) {
	dup := m.ids[id]
	if !dup {
		m.ids[id] = true
		m.got = append(m.got, text)
	}
	m.write(ctx, ws, &frame.Accepted{ID: id, Duplicate: dup})
}

func (m *model) forget(seq int64) {
	m.told = max(m.told, seq)
	for i := range m.out[:seq] {
		m.out[i] = nil
	}
}

func (m *model) add(frames ...frame.Down) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.out = append(m.out, frames)
	m.flush(context.Background())
}

func (m *model) flush(ctx context.Context) {
	for ; m.live != nil && m.sent < len(m.out); m.sent++ {
		for _, f := range m.out[m.sent] {
			if m.write(ctx, m.live, f) != nil {
				m.live = nil
				return
			}
		}
	}
}

func (m *model) write(ctx context.Context, ws *websocket.Conn, f frame.Down) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return ws.Write(ctx, websocket.MessageText, frame.EncodeDown(f))
}

// durable returns the n-th durable item of the server: a message, a message in chunks, or a file in
// parts.
func durable(n int, kind int) []frame.Down {
	id, seq := fmt.Sprint("d", n), int64(n)
	switch kind {
	case 1:
		return []frame.Down{
			&frame.Message{ID: id, Text: "half ", Chunk: frame.Chunk{Index: 0, Total: 2}, Seq: seq},
			&frame.Message{ID: id, Text: id, Chunk: frame.Chunk{Index: 1, Total: 2}, Final: true, Seq: seq}}
	case 2:
		part := func(i int) *frame.Media {
			return &frame.Media{ID: id, Kind: "image", Size: 3000, Part: i, Parts: 3, Final: i == 2, Seq: seq, Data: []byte(strings.Repeat("x", 1000))}
		}
		return []frame.Down{part(0), part(1), part(2)}
	}
	return []frame.Down{
		&frame.Message{ID: id, Text: "step", Edit: true, Chunk: frame.Chunk{Total: 1}},
		&frame.Message{ID: id, Text: id, Final: true, Edit: true, Chunk: frame.Chunk{Total: 1}, Seq: seq}}
}

// Whatever the network does, every message reaches the server in order and counts once, every
// durable frame reaches the app exactly once and in order, and the server keeps every frame that
// the app has not handled.
func TestNothingIsLostOrDoubled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		faults := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) fault {
			return fault{after: rapid.IntRange(0, 12_000).Draw(rt, "after"), hang: rapid.IntRange(0, 4).Draw(rt, "hang") == 0}
		}), 0, 6).Draw(rt, "faults")
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 25).Draw(rt, "steps")

		m := &model{ids: map[string]bool{}, files: map[string][]byte{}}
		srv := httptest.NewServer(m)
		defer srv.Close()
		bad := newProxy(strings.TrimPrefix(srv.URL, "http://"), faults)
		defer bad.stop()
		cfg := config("ws://" + bad.Addr().String())
		cfg.Heartbeat, cfg.PongTimeout, cfg.DialTimeout = 30*time.Millisecond, 30*time.Millisecond, 100*time.Millisecond
		cfg.QueueBytes = rapid.SampledFrom([]int{2000, 1 << 20}).Draw(rt, "queue")
		cfg.SetRoomWait(5 * time.Millisecond)
		d, err := device.Open(t.Context(), cfg)
		if err != nil {
			rt.Fatal(err)
		}
		var mu sync.Mutex
		var got []string
		handled := int64(0)
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		go func() {
			defer close(done)
			for ev, err := range d.Events(context.Background()) {
				if err != nil {
					return
				}
				mu.Lock()
				m.mu.Lock()
				if m.told > handled {
					m.problems = append(m.problems, fmt.Sprintf("told %d of %d handled", m.told, handled))
				}
				m.mu.Unlock()
				switch ev := ev.(type) {
				case device.Message:
					if ev.Final {
						got = append(got, strings.TrimPrefix(ev.Text, "half "))
						handled++
					}
				case device.File:
					if ev.Err != nil || len(ev.Data) != 3000 {
						m.problem("file", fmt.Sprint(ev.Err))
					}
					got = append(got, ev.ID)
					handled++
				case device.HistoryLost:
					m.problem("history lost")
				case device.Problem:
					m.problem(ev.Err.Error())
				}
				mu.Unlock()
			}
		}()

		var want, texts, sums []string
		for i, step := range steps {
			switch step {
			case 0, 1, 2:
				want = append(want, fmt.Sprint("d", len(want)+1))
				m.add(durable(len(want), step)...)
			case 3, 4:
				texts = append(texts, fmt.Sprint("m", i))
				if _, err := d.Send(ctx, texts[len(texts)-1]); err != nil {
					rt.Fatal(err)
				}
			case 5:
				data := []byte(strings.Repeat(fmt.Sprint(i), 10_000))
				sums = append(sums, fmt.Sprintf("file %x", sha256.Sum256(data)))
				if _, err := d.SendFile(ctx, device.FileOptions{Data: data}); err != nil {
					rt.Fatal(err)
				}
			}
		}
		if err := d.Flush(ctx); err != nil {
			rt.Fatalf("flush: %v; %+v", err, d.Status())
		}
		for len(want) > 0 {
			mu.Lock()
			n := len(got)
			mu.Unlock()
			if n >= len(want) || ctx.Err() != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if err := d.Close(ctx); err != nil {
			rt.Fatal(err)
		}
		<-done
		if fmt.Sprint(got) != fmt.Sprint(want) {
			rt.Fatalf("the app got %v, not %v", got, want)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		var gotTexts, gotFiles []string
		for _, s := range m.got {
			if strings.HasPrefix(s, "file ") {
				gotFiles = append(gotFiles, s)
			} else {
				gotTexts = append(gotTexts, s)
			}
		}
		if fmt.Sprint(gotTexts) != fmt.Sprint(texts) || fmt.Sprint(gotFiles) != fmt.Sprint(sums) {
			rt.Fatalf("the server got %v %v, not %v %v", gotTexts, gotFiles, texts, sums)
		}
		if len(m.problems) > 0 {
			rt.Fatal(m.problems)
		}
	})
}

func TestHalfOpenConnectionIsFound(t *testing.T) {
	m := &model{ids: map[string]bool{}, files: map[string][]byte{}}
	srv := httptest.NewServer(m)
	defer srv.Close()
	bad := newProxy(strings.TrimPrefix(srv.URL, "http://"), []fault{{after: 1500, hang: true}})
	defer bad.stop()
	cfg := config("ws://" + bad.Addr().String())
	cfg.Heartbeat, cfg.PongTimeout = 30*time.Millisecond, 30*time.Millisecond
	a := open(t, cfg)
	expect(a, state(device.Online))
	sent, _ := a.Send(t.Context(), strings.Repeat("x", 2000))
	w := expect(a, state(device.Waiting))
	if w.Err == nil || !strings.Contains(w.Err.Error(), "ping") {
		t.Fatal(w.Err)
	}
	if _, err := sent.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Close(t.Context())
}
