package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/gobwas/ws"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
)

// masked is a frame as a client sends it.
func masked(op ws.OpCode, fin bool, payload string) string {
	return string(ws.MustCompileFrame(ws.MaskFrame(ws.NewFrame(op, fin, []byte(payload)))))
}

// upgraded opens a WebSocket whose every byte a test writes itself.
func upgraded(t testing.TB, dialed net.Conn) *bufio.Reader {
	t.Helper()
	in := bufio.NewReader(dialed)
	resp, err := http.ReadResponse(in, nil)
	ok(t, err)
	if resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade got %s", resp.Status)
	}
	return in
}

// closeCode passes over frames until the server closes, and returns with what code.
func closeCode(in io.Reader) int {
	for {
		h, err := ws.ReadHeader(in)
		if err != nil {
			return 0
		}
		b := make([]byte, h.Length)
		if _, err := io.ReadFull(in, b); err != nil {
			return 0
		}
		if h.OpCode == ws.OpClose {
			code, _ := ws.ParseCloseFrameData(b)
			return int(code)
		}
	}
}

// Thousands of strangers who open a connection and go on slowly or not at all: in the middle of the request, after the upgrade, in the middle of
// the first frame, in the body of a request. Phones get in meanwhile, and the strangers are ended.
func TestStrangersWhoOnlyConnect(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	before := s.Memory(t)
	most := watch(t, s)
	first := masked(ws.OpText, true, hello("not the token", "stranger"))
	kinds := []struct{ whole, drip string }{
		{"", "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + strings.Repeat("x", 100)}, // never finished
		{"", ""},                      // says nothing
		{upgrade + "\r\n", ""},        // never says hello
		{upgrade + "\r\n", first[:8]}, // says it byte by byte, and never to its end
		{upgrade + "\r\n" + masked(ws.OpText, false, "{"), ""}, // in a message that goes on
		{"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n", "body"},
	}
	many := min(scale(2000, 10_000), openFiles()/2-200)
	conns := make([]net.Conn, many)
	for i := range conns {
		conns[i] = dial(t, s, kinds[i%len(kinds)].whole)
		_ = conns[i].SetDeadline(time.Time{})
		if i%(many/4) == 0 {
			p.Ask(fmt.Sprint("in between ", i), "You said: in between")
		}
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // a byte now and then, to look alive
		for at := 0; ; at++ {
			for i, c := range conns {
				if drip := kinds[i%len(kinds)].drip; at < len(drip) {
					_, _ = c.Write([]byte{drip[at]})
				}
			}
			select {
			case <-stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	})
	p.Ask("all are there", "You said: all are there")
	for _, c := range conns {
		wg.Go(func() { ends(c) }) // each is ended by the server
	}
	done := make(chan struct{})
	go func() { defer close(done); wg.Wait() }()
	until(t, "the strangers to be ended", func() bool { return s.Metrics(t)["process_open_fds"] < 100 }) // none where it is not counted
	close(stop)
	<-done
	if peak := most(); peak > before+strangersCost {
		t.Errorf("%d strangers took %.0f MiB", many, (peak-before)/(1<<20))
	} else {
		t.Logf("%d strangers took %.0f MiB", many, (peak-before)/(1<<20))
	}
	unharmed(t, s, p, before, 32<<20)
	quietLog(t, s)
}

// Strangers who hold all connections that the process may have: a phone that is connected is served, its files too, and others get in afterwards.
func TestStrangersTakeAllConnections(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil || openFiles() < 2000 {
		t.Skip("there is no way to limit a process's files here")
	}
	s := e2e.NewServer(t, "MOBILE_LOG_LEVEL=info")
	limited := filepath.Join(t.TempDir(), "limited")
	ok(t, os.WriteFile(limited, fmt.Appendf(nil, "#!%s\nulimit -n 320 && exec %s \"$@\"\n", shell, s.Binary), 0o700))
	s.Agent, s.Binary = "demo", limited
	s.Start()
	p := e2e.NewPhone(t, s, "paired")
	p.Ask("before", "You said: before")
	before := s.Memory(t)
	conns := make([]net.Conn, 500)
	for i := range conns {
		conns[i] = dial(t, s, upgrade+"\r\n")
	}
	p.Ask("all are there", "You said: all are there")
	for i := range 3 {
		p.Upload(device.FileOptions{Name: "x.bin", Mime: "application/octet-stream", Data: []byte{byte(i), 2, 3}})
	}
	for _, c := range conns {
		_ = c.Close()
	}
	unharmed(t, s, p, before, 32<<20)
	if strings.Contains(s.LogTail(1<<30), "too many open files") {
		t.Error("files ran out")
	}
}

// What a phone with a token can do to the connection itself.
func TestFrameFloods(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	before := s.Memory(t)
	most := watch(t, s)
	open := func(t testing.TB, id string) (net.Conn, *bufio.Reader) {
		c := dial(t, s, upgrade+"\r\n"+masked(ws.OpText, true, hello(s.Token, id)))
		return c, upgraded(t, c)
	}
	opened := 0
	for name, flood := range map[string]struct {
		piece string
		times int
		reads bool
		codes []int // 0: cut off without a word
	}{
		"pings":                          {strings.Repeat(masked(ws.OpPing, true, strings.Repeat("p", 125)), 100), 3000, false, []int{0, 1013}},
		"pongs":                          {strings.Repeat(masked(ws.OpPong, true, strings.Repeat("p", 125)), 100), 1000, true, nil},
		"fragments of one byte":          {masked(ws.OpText, false, "{") + strings.Repeat(masked(ws.OpContinuation, false, " "), 200_000), 1, true, nil},
		"empty fragments":                {masked(ws.OpText, false, "{") + strings.Repeat(masked(ws.OpContinuation, false, ""), 200_000), 1, true, nil},
		"a continuation of nothing":      {masked(ws.OpContinuation, true, "x"), 1, true, []int{1002}},
		"a message within a message":     {masked(ws.OpText, false, "{") + masked(ws.OpText, true, "}"), 1, true, []int{1002}},
		"a ping in fragments":            {masked(ws.OpPing, false, "x"), 1, true, []int{1002}},
		"a ping that is too long":        {masked(ws.OpPing, true, strings.Repeat("x", 126)), 1, true, []int{1002}},
		"an unknown kind of frame":       {masked(0x3, true, "x"), 1, true, []int{1002}},
		"a frame that is not masked":     {string(ws.MustCompileFrame(ws.NewTextFrame([]byte("{}")))), 1, true, []int{1002}},
		"a compressed frame":             {"\xc1" + masked(ws.OpText, true, "\xaaV*.I,)-V\xb2R*H\xaeT\xd2Q*.)J\xcdK\x06\x00")[1:], 1, true, []int{1002}},
		"a close with a code of its own": {masked(ws.OpClose, true, "\x00\x01"), 1, true, []int{1002}},
		"closes":                         {strings.Repeat(masked(ws.OpClose, true, ""), 1000), 1, true, []int{0, 1005}},
		"invalid UTF-8":                  {strings.Repeat(masked(ws.OpText, true, `{"t":"text","id":"x","text":"`+"\xff\xfe\xed\xa0\x80"+`"}`), 500), 1, true, nil},
		"nesting":                        {strings.Repeat(masked(ws.OpText, true, `{"t":"ping","id":"1","x":`+strings.Repeat("[", 60_000)), 50), 1, true, nil},
		"nesting in objects":             {strings.Repeat(masked(ws.OpText, true, `{"t":"call","id":"1","method":"x","params":`+strings.Repeat(`{"a":`, 12_000)+"1"+strings.Repeat("}", 12_001)), 50), 1, true, nil},
		"keys that are all the same":     {strings.Repeat(masked(ws.OpText, true, "{"+strings.Repeat(`"t":"ping",`, 5000)+`"t":"ping"}`), 50), 1, true, nil},
		"numbers that never end":         {strings.Repeat(masked(ws.OpText, true, `{"t":"ack","seq":`+strings.Repeat("9", 60_000)+`}`), 50), 1, true, nil},
		"a message that is then unended": {masked(ws.OpText, false, strings.Repeat("x", 1<<20)), 8, true, []int{1002}},
	} {
		t.Run(name, func(t *testing.T) {
			opened++
			c, in := open(t, "flood-"+strconv.Itoa(opened)) // each its own: who replaces its connection too often is turned away
			var wg sync.WaitGroup
			wg.Go(func() {
				for range flood.times {
					if _, err := io.WriteString(c, flood.piece); err != nil {
						return
					}
				}
			})
			if flood.codes == nil { // it goes on: a ping in words is answered, or in a message that never ends it is closed by us
				wg.Wait()
				_, _ = io.WriteString(c, masked(ws.OpClose, true, string(ws.NewCloseFrameBody(1000, ""))))
				if code := closeCode(in); code != 1000 {
					t.Errorf("closed with %d", code)
				}
				return
			}
			if !flood.reads {
				wg.Wait() // ends when the server cuts it off, or has taken it all
				_ = c.Close()
				return
			}
			code := closeCode(in)
			for _, want := range flood.codes {
				if code == want {
					code = -1
				}
			}
			if code != -1 {
				t.Errorf("closed with %d, want one of %v", code, flood.codes)
			}
			_ = c.Close()
			wg.Wait()
		})
	}
	if peak := most(); peak > before+192<<20 {
		t.Errorf("the floods took %.0f MiB", (peak-before)/(1<<20))
	}
	unharmed(t, s, p, before, 48<<20)
	quietLog(t, s)
}

// Compression is offered by every browser, and taken by nobody here: there is nothing to be blown up.
func TestCompressionIsNotTaken(t *testing.T) {
	t.Parallel()
	s, _ := start(t)
	for _, offer := range []string{"permessage-deflate", "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame", "permessage-bzip2"} {
		c := dial(t, s, upgrade+"Sec-WebSocket-Extensions: "+offer+"\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		ok(t, err)
		if resp.StatusCode != http.StatusSwitchingProtocols || len(resp.Header.Values("Sec-WebSocket-Extensions")) != 0 {
			t.Errorf("%q gets %s with %q", offer, resp.Status, resp.Header.Values("Sec-WebSocket-Extensions"))
		}
	}
}

// Many phones send a file at the limit at one moment: memory is bounded, all files arrive, those of phones that were told to come again too.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	s, p := start(t)
	before := s.Memory(t)
	most := watch(t, s)
	many := scale(24, 100)
	// What is allowed to come, what is not applied, their decoded forms, and as much again that the collector leaves for later.
	const bound = 2 * (64 + 64 + 64) << 20
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			line := frame.EncodeUp(&frame.Media{ID: "file", Kind: "document", Mime: "application/octet-stream", Filename: "x.bin",
				Data: bytes.Repeat([]byte{byte(i), 1, 2, 3}, 2<<20), Parts: 1})
			for {
				done, err := sendFile(t, s.URL(), hello(s.Token, fmt.Sprint("up-", i)), line)
				if done || err != nil {
					if err != nil {
						t.Error(err)
					}
					return
				}
				time.Sleep(time.Second + rand.N(time.Second)) // as phones do
			}
		})
	}
	p.Ask("in the middle of it", "You said: in the middle of it")
	wg.Wait()
	if peak := most(); peak > before+bound {
		t.Errorf("%d uploads took %.0f MiB", many, (peak-before)/(1<<20))
	} else {
		t.Logf("%d uploads took %.0f MiB", many, (peak-before)/(1<<20))
	}
	unharmed(t, s, p, before, 64<<20)
}

// sendFile is one try: false without an error where the server said to come again.
func sendFile(t testing.TB, url, hello string, line []byte) (done bool, err error) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	c, _, err := websocket.Dial(soon(t), url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
	if err != nil {
		return false, err
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(-1)
	if err := c.Write(soon(t), websocket.MessageText, []byte(hello)); err != nil {
		return false, err
	}
	_ = c.Write(soon(t), websocket.MessageText, line) // it may be cut off in the middle
	for {
		_, b, err := c.Read(soon(t))
		if err != nil {
			if code := websocket.CloseStatus(err); code != websocket.StatusTryAgainLater && code != -1 {
				return false, fmt.Errorf("cut off: %w", err)
			}
			return false, nil
		}
		switch f, _ := frame.DecodeDown(b); f := f.(type) {
		case *frame.Accepted:
			return true, nil
		case *frame.Error:
			if f.Code != frame.RateLimited {
				return false, fmt.Errorf("refused with %s: %s", f.Code, f.Message)
			}
		}
	}
}
