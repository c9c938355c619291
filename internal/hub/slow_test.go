package hub_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/metrics"
)

// A slow reader with a long backlog: whatever happens live while it drains comes after it, and
// every durable frame once.
func TestLiveNeverOvertakesTheBacklog(t *testing.T) {
	w := newWorld(t, nil)
	w.connect("d").drop()
	const backlog, live, size = 400, 60, 3000
	body := strings.Repeat("x", size)
	for i := 1; i <= backlog; i++ {
		w.say("d", fmt.Sprintf("%d %s", i, body))
	}
	c := w.open("d", slow(), withDelta())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	for i := backlog + 1; i <= backlog+live; i++ {
		id := agent.NewID()
		w.post("d", agent.Working{}, agent.Say{ID: id, Text: "step of " + fmt.Sprint(i)}, agent.ToolStep{ID: "t", Name: "x", State: "progress"})
		w.post("d", agent.Say{ID: id, Text: fmt.Sprintf("%d %s", i, body), Final: true})
		if i == backlog+live/2 {
			c.startReading()
		}
	}
	w.post("d", agent.Say{ID: "open", Text: "still being said"})
	next := 1
	for next <= backlog+live {
		f, err := c.any()
		ok(t, err)
		m, is := f.(*frame.Message)
		switch {
		case is && m.Final:
			var n int
			_, _ = fmt.Sscan(m.Text, &n)
			if n != next || m.Seq != int64(n) {
				t.Fatalf("message %d with seq %d, want %d", n, m.Seq, next)
			}
			next++
		case is:
			var n int
			if _, err := fmt.Sscanf(m.Text, "step of %d", &n); err == nil && n != next {
				t.Fatalf("a step of message %d came before message %d", n, next)
			}
			if m.ID == "open" && next <= backlog+live {
				t.Fatalf("the newest message came before message %d", next)
			}
		case indicator(f) && next <= backlog:
			t.Fatalf("%s came in the middle of the backlog", show(f))
		}
	}
	if m := find(c, func(m *frame.Message) bool { return m.ID == "open" }); m.Text != "still being said" {
		t.Errorf("the open message: %s", show(m))
	}
}

// A client that floods pings and reads nothing of the answers is cut off with 1013; another does
// not notice.
func TestPingFlood(t *testing.T) {
	var counts *metrics.Set
	w := newWorld(t, func(o *hub.Options) { counts = o.Metrics })
	good := w.connect("good")
	c := w.open("d", slow())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	ping := frame.EncodeUp(&frame.Ping{ID: strings.Repeat("p", 128)})
	flooded := make(chan int, 1)
	go func() {
		n := 0
		for n < 1<<20 && c.ws.Write(ctx, websocket.MessageText, ping) == nil {
			n++
		}
		flooded <- n
	}()
	good.text("m1", "one")
	w.reply(w.take(), "fine")
	if m := good.message(); m.Text != "fine" {
		t.Errorf("reply %s", show(m))
	}
	// It reads only after more answers wait than may.
	for value[map[string]float64](t)(counts.Totals())["device_closes_total"] == 0 {
		if len(flooded) > 0 {
			t.Fatalf("%d pings did not end the connection", <-flooded)
		}
		time.Sleep(time.Millisecond)
	}
	c.startReading()
	if code := c.closed(); code != int(frame.CloseTryLater) {
		t.Errorf("closed with %d, want 1013", code)
	}
	select {
	case n := <-flooded:
		t.Logf("after %d pings", n)
	case <-time.After(patience):
		t.Error("the flood is still being read")
	}
	c = w.connect("d")
	c.text("m1", "and now properly")
}

// Large files under back-pressure: every part once, in order, nothing between them that belongs
// after, and text of meanwhile comes after.
func TestFilePartsUnderBackPressure(t *testing.T) {
	w := newWorld(t, nil)
	w.connect("d").drop()
	const size = 7<<20 + 12345
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i % 251)
	}
	f := value[hashed](t)(w.put(data))
	file := func(id string) agent.SendFile {
		return agent.SendFile{ID: id, File: agent.File{Kind: "document", Mime: "application/octet-stream", Name: id + ".bin", Hash: f.hash, Size: f.size}}
	}
	w.post("d", file("f1"), agent.Say{ID: "s1", Text: "between", Final: true}, file("f2"))
	c := w.open("d", slow())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	w.post("d", agent.Say{ID: "s2", Text: "after", Final: true})
	c.startReading()
	c.Ready = expect[*frame.Ready](c)
	get := func(id string) int64 {
		t.Helper()
		var got bytes.Buffer
		for part := 0; ; part++ {
			m := expect[*frame.Media](c)
			if m.ID != id || m.Part != part || m.Parts != 3 || m.Final != (part == 2) || m.Size != size || m.Filename != id+".bin" {
				m.Data = nil
				t.Fatalf("part %d of %s: %s", part, id, show(m))
			}
			got.Write(m.Data)
			if m.Final {
				if sha256.Sum256(got.Bytes()) != sha256.Sum256(data) {
					t.Errorf("%s: %d bytes, and not the same", id, got.Len())
				}
				return m.Seq
			}
		}
	}
	first := get("f1")
	if m := expect[*frame.Message](c); m.Text != "between" || m.Seq <= first {
		t.Errorf("then %s", show(m))
	}
	get("f2")
	if m := expect[*frame.Message](c); m.Text != "after" {
		t.Errorf("then %s", show(m))
	}
	c.quiet()
}

// A file that was cut in the middle by a lost connection comes again as a whole.
func TestFileCutByReconnect(t *testing.T) {
	w := newWorld(t, nil)
	c := w.open("d", slow())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	f := value[hashed](t)(w.put(make([]byte, 7<<20)))
	w.post("d", agent.SendFile{ID: "f1", File: agent.File{Kind: "document", Name: "f.bin", Hash: f.hash, Size: f.size}})
	_ = c.ws.CloseNow()
	until(t, "the device to be gone", func() bool { return !w.live("d") })
	c = w.connect("d")
	for part := range 3 {
		if m := expect[*frame.Media](c); m.Part != part || m.Parts != 3 {
			t.Fatalf("part %d of %d, want %d of 3", m.Part, m.Parts, part)
		}
	}
}

// The steps of a long stream to a client that does not read are put together: the newest text
// comes, memory stays flat.
func TestStreamToASlowReader(t *testing.T) {
	w := newWorld(t, nil)
	c := w.open("d", slow(), withDelta())
	until(t, "the device to be connected", func() bool { return w.live("d") })
	text := strings.Builder{}
	for i := range 300 {
		fmt.Fprintf(&text, "word%d %s ", i, strings.Repeat("y", 500))
		w.post("d", agent.Say{ID: "s1", Text: text.String()})
	}
	w.post("d", agent.Say{ID: "s1", Text: text.String() + "end", Final: true})
	c.startReading()
	c.Ready = expect[*frame.Ready](c)
	n, shown := 0, ""
	for {
		m := expect[*frame.Message](c)
		n++
		if m.Append != nil {
			if m.At != len(shown) { // ASCII: bytes are code units
				t.Fatalf("append at %d to a text of %d", m.At, len(shown))
			}
			shown += *m.Append
		} else {
			shown = m.Text
		}
		if !strings.HasPrefix(text.String()+"end", shown) {
			t.Fatal("the text shown was never said")
		}
		if m.Final {
			break
		}
	}
	if shown != text.String()+"end" || n > 100 {
		t.Errorf("%d frames, %d bytes of %d", n, len(shown), text.Len()+3)
	}
}
