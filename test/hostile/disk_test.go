package hostile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
)

// diskUse is what lies below the server's data folder, in bytes, with files rounded up to blocks.
func diskUse(t testing.TB, s *e2e.Server) (sum int64) {
	t.Helper()
	ok(t, filepath.WalkDir(s.Data, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // goes while we look
		}
		if err != nil {
			return err
		}
		if info, err := e.Info(); err == nil && e.Type().IsRegular() {
			sum += (info.Size() + 4095) / 4096 * 4096
		}
		return nil
	}))
	return sum
}

// watchDisk samples how much the server has on the disk until the function it returns is called, which gives the most that was seen.
func watchDisk(t testing.TB, s *e2e.Server) (most func() int64) {
	stop := make(chan struct{})
	var peak int64
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			peak = max(peak, diskUse(t, s))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	var once sync.Once
	most = func() int64 {
		once.Do(func() { close(stop); wg.Wait() })
		return peak
	}
	t.Cleanup(func() { most() })
	return most
}

// replies counts what a flooder was told, by code; "taken" for what was accepted.
type replies struct {
	mu sync.Mutex
	of map[string]int
	// said holds one sentence for each code.
	said map[string]string
}

func (a *replies) note(d frame.Down) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch f := d.(type) {
	case *frame.Accepted, *frame.Delivered:
		a.of["taken"]++
	case *frame.Error:
		a.of[string(f.Code)]++
		a.said[string(f.Code)] = f.Message
	}
}

func (a *replies) count(code string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[code]
}

// flood sends a number of frames as fast as the server takes them, and notes all answers. Who is cut off comes again and goes on.
func flood(ctx context.Context, s *e2e.Server, hello string, a *replies, frames int, next func(i int) frame.Up) {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	for i := 0; i < frames && ctx.Err() == nil; {
		c, _, err := websocket.Dial(ctx, s.URL(), &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err != nil {
			continue // many come at once
		}
		c.SetReadLimit(-1)
		_ = c.Write(ctx, websocket.MessageText, []byte(hello))
		done, in := make(chan struct{}), make(chan struct{}, 1)
		go func() {
			defer close(done)
			for {
				_, b, err := c.Read(ctx)
				select {
				case in <- struct{}{}:
				default:
				}
				if err != nil {
					return
				}
				f, err := frame.DecodeDown(b)
				if err != nil {
					continue
				}
				if r, is := f.(*frame.Result); is && r.ID == "end" {
					return
				}
				if e, is := f.(*frame.Error); is && e.Ref == "end" { // a sender has no calls
					return
				}
				a.note(f)
			}
		}()
		<-in // a stranger who floods is cut off
		for ; i < frames && err == nil; i++ {
			err = c.Write(ctx, websocket.MessageText, frame.EncodeUp(next(i)))
		}
		if err == nil { // what is answered after all that was sent is the end
			_ = c.Write(ctx, websocket.MessageText, frame.EncodeUp(&frame.Call{ID: "end", Method: "no.such.method", Params: []byte("{}")}))
			<-done
		}
		_ = c.CloseNow()
		<-done
	}
}

// unique is content that no other file has.
func unique(who, i, size int) []byte {
	b := bytes.Repeat([]byte{byte(i)}, size)
	binary.LittleEndian.PutUint32(b, uint32(who))
	binary.LittleEndian.PutUint64(b[4:], uint64(i))
	return b
}

// Devices that were let in, and senders of deliveries, try to fill the disk in every way they have: whole files and parts, announced as small,
// never finished, of one byte each, the same one under ever new names, voice messages, texts, ids, deliveries of files and texts under ever
// new names. The data folder never holds more than its limit, the flooders are told so in words, and a phone that came with a token of its own
// talks and sends files all the while.
func TestNobodyFillsTheDisk(t *testing.T) {
	t.Parallel()
	const limit = 128 << 20
	extra, sender := strings.Repeat("e", 32), strings.Repeat("d", 32)
	s, p := start(t, "MOBILE_MAX_DATA=128MiB", "MOBILE_EXTRA_TOKENS=flood="+extra, "MOBILE_DELIVER_TOKENS=cron="+sender)
	most := watchDisk(t, s)
	addressee := e2e.NewPhone(t, s, "addressee")
	addressee.Online()
	factor := scale(1, 20)
	floods := map[string]struct {
		token  string
		ids    int // devices that do it
		frames int
		next   func(who, i int) frame.Up
	}{
		"files": {extra, 4, 25, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("f", i), Kind: "document", Filename: "x.bin", Data: unique(who, i, 1<<20), Parts: 1}
		}},
		"parts that never end": {extra, 2, 28, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("p", i/7), Kind: "document", Data: unique(who, i, 1<<20), Part: i % 7, Parts: 8, Size: 1}
		}},
		"parts of a file said to be small": {extra, 2, 35, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("q", i/7), Kind: "document", Data: unique(who, i, 1<<20), Part: i % 7, Parts: 7, Size: 5000}
		}},
		"sizes that are no sizes": {extra, 1, 30, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("s", i), Kind: "document", Data: unique(who, i, 64<<10), Part: 0, Parts: 2, Size: []int64{1 << 62, -1 << 62, 1<<63 - 1}[i%3]}
		}},
		"files of a few bytes": {extra, 1, 1200, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("t", i), Kind: "document", Data: unique(who, i, 12), Parts: 1}
		}},
		"the same file under other names": {extra, 1, 25, func(who, i int) frame.Up {
			return &frame.Media{ID: fmt.Sprint("n", i), Kind: "document", Filename: fmt.Sprint(i, ".bin"), Data: unique(who, 0, 1<<20), Parts: 1}
		}},
		"voice": {extra, 1, 25, func(who, i int) frame.Up {
			return &frame.Audio{ID: fmt.Sprint("v", i), Format: "ogg", Data: unique(who, i, 1<<20)}
		}},
		"texts": {extra, 1, 150, func(_, i int) frame.Up {
			return &frame.Text{ID: fmt.Sprint("x", i), Text: strings.Repeat("x", 200<<10)}
		}},
		"ids": {extra, 1, 5000, func(_, i int) frame.Up { return &frame.Stop{ID: fmt.Sprint(strings.Repeat("i", 100), i)} }},
		"deliveries of files": {sender, 3, 10, func(who, i int) frame.Up {
			return &frame.Deliver{ID: fmt.Sprint("d", who, i), To: "addressee", Kind: "document", Filename: "x", Data: unique(who, i, 1<<20)}
		}},
		"deliveries of texts": {sender, 1, 250, func(_, i int) frame.Up {
			return &frame.Deliver{ID: fmt.Sprint("e", i), To: "addressee", Text: strings.Repeat("y", 100<<10)}
		}},
		"deliveries of a device on this machine": {extra, 1, 25, func(who, i int) frame.Up {
			return &frame.Deliver{ID: fmt.Sprint("l", i), To: "addressee", Kind: "document", Filename: "x", Data: unique(who, i, 1<<20)}
		}},
	}
	told := map[string]*replies{}
	var wg sync.WaitGroup
	who := 0
	for _, name := range slices.Sorted(maps.Keys(floods)) {
		f := floods[name]
		a := &replies{of: map[string]int{}, said: map[string]string{}}
		told[name] = a
		for range f.ids {
			who++
			me := who
			wg.Go(func() {
				flood(soon(t), s, hello(f.token, fmt.Sprint("flood-", me)), a, factor*f.frames, func(i int) frame.Up { return f.next(me, i) })
			})
		}
	}
	over := make(chan struct{})
	go func() { defer close(over); wg.Wait() }()
	for i, done := 0, false; !done; i++ {
		p.Ask(fmt.Sprint("in between ", i), "You said: in between")
		if i < 5 {
			p.Upload(device.FileOptions{Name: "mine.bin", Mime: "application/octet-stream", Data: unique(1000, i, 300<<10)})
		}
		select {
		case <-over:
			done = i >= 5
		case <-time.After(50 * time.Millisecond):
		}
	}
	peak := most()
	if peak > limit {
		t.Errorf("the disk held %d MiB, %d are allowed", peak>>20, limit>>20)
	}
	t.Logf("the disk held %d MiB at most", peak>>20)
	for name, a := range told {
		t.Logf("%s: %v", name, a.of)
		for code := range a.of {
			if !slices.Contains([]string{"taken", "no_space", "rate_limited", "too_big", "bad_frame", "device_offline"}, code) {
				t.Errorf("%s: got %s: %s", name, code, a.said[code])
			}
		}
	}
	for _, name := range []string{"files", "voice", "files of a few bytes", "the same file under other names", "deliveries of files", "parts of a file said to be small", "deliveries of a device on this machine"} {
		if a := told[name]; a.count("no_space") == 0 || !strings.Contains(a.said["no_space"], "send it again") {
			t.Errorf("%s: nobody was told that there is no room: %v", name, a.of)
		}
	}
	if text := s.LogTail(1 << 30); strings.Contains(text, "store failed") || strings.Contains(text, "no space left") {
		t.Error("the store failed")
	}
	p.Ask("after", "You said: after")
	quietLog(t, s)
}

// Where no device has a share, all together still stay within the limit, and what is kept for messages is left for them.
func TestTheLimitHoldsWithoutShares(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	s, p := start(t, "MOBILE_MAX_DATA=64MiB", "MOBILE_MAX_DEVICE_DATA=1GiB")
	most := watchDisk(t, s)
	a := &replies{of: map[string]int{}, said: map[string]string{}}
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			flood(soon(t), s, hello(s.Token, fmt.Sprint("flood-", who)), a, 25, func(i int) frame.Up {
				return &frame.Media{ID: fmt.Sprint("f", i), Kind: "document", Filename: "x.bin", Data: unique(who, i, 1<<20), Parts: 1}
			})
		})
	}
	wg.Wait()
	p.Ask("after", "You said: after")
	if peak := most(); peak > limit {
		t.Errorf("the disk held %d MiB, %d are allowed", peak>>20, limit>>20)
	}
	if a.count("no_space") == 0 || a.count("taken") == 0 {
		t.Errorf("the flooders were told %v", a.of)
	}
}

// A server that is killed in the middle of uploads counts, and keeps, nothing of them when it starts again.
func TestUnfinishedUploadsAreGoneAfterAKill(t *testing.T) {
	t.Parallel()
	s, p := start(t, "MOBILE_MAX_DATA=128MiB")
	before := s.Metrics(t)["hermes_mobile_data_bytes"]
	for who := range 4 {
		c, _, err := websocket.Dial(soon(t), s.URL(), nil)
		ok(t, err)
		t.Cleanup(func() { _ = c.CloseNow() })
		ok(t, c.Write(soon(t), websocket.MessageText, []byte(hello(s.Token, fmt.Sprint("up-", who)))))
		for i := range 4 {
			ok(t, c.Write(soon(t), websocket.MessageText, frame.EncodeUp(&frame.Media{ID: "f", Kind: "document", Data: unique(who, i, 1<<20), Part: i, Parts: 5})))
		}
	}
	incoming := filepath.Join(s.Data, "files", "incoming")
	count := func() int {
		list, err := os.ReadDir(incoming)
		ok(t, err)
		return len(list)
	}
	until(t, "unfinished files", func() bool { return count() == 4 })
	until(t, "them to be counted", func() bool { return s.Metrics(t)["hermes_mobile_data_bytes"] > before+12<<20 })
	s.Kill()
	if count() != 4 {
		t.Fatal("the kill left no unfinished files")
	}
	s.Start()
	until(t, "the unfinished files to go", func() bool { return count() == 0 })
	if now := s.Metrics(t)["hermes_mobile_data_bytes"]; now > before+8<<20 {
		t.Errorf("%.0f bytes are counted, %.0f before", now, before)
	}
	p.Ask("after", "You said: after")
}
