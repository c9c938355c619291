package loglimit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// world is a log with its own clock.
type world struct {
	out bytes.Buffer
	h   slog.Handler
	now time.Time
}

func start() *world {
	w := &world{now: time.Unix(1_800_000_000, 0)}
	w.h = New(slog.NewTextHandler(&w.out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return w
}

func (w *world) log(level slog.Level, text string, args ...any) {
	r := slog.NewRecord(w.now, level, text, 0)
	r.Add(args...)
	_ = w.h.Handle(context.Background(), r)
}

// lines counts the lines that contain a text, and clears the log.
func (w *world) lines(text string) int {
	n := 0
	for line := range strings.Lines(w.out.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	w.out.Reset()
	return n
}

// A flood of one message gets a burst of lines, then a steady rate, and hides no other message.
func TestFlood(t *testing.T) {
	w := start()
	for range 10_000 {
		w.log(slog.LevelInfo, "flood")
	}
	w.log(slog.LevelDebug, "another")
	if n, other := strings.Count(w.out.String(), "msg=flood"), strings.Count(w.out.String(), "msg=another"); n != Burst || other != 1 {
		t.Errorf("%d lines of the flood, %d of another", n, other)
	}
	w.out.Reset()
	const minutes = 10
	for range minutes * 60 * 20 {
		w.now = w.now.Add(50 * time.Millisecond)
		w.log(slog.LevelDebug, "flood") // at every level
	}
	if text := w.out.String(); !strings.Contains(text, fmt.Sprint(keyLeftOut, "=", 10_000-Burst+39)) || !strings.Contains(text, fmt.Sprint(keyLeftOut, "=39")) {
		t.Errorf("the dropped lines are not counted: %.500s", text)
	}
	if n := w.lines("msg=flood"); n < minutes*PerMinute-1 || n > minutes*PerMinute+1 {
		t.Errorf("%d lines in %d minutes", n, minutes)
	}
	w.now = w.now.Add(time.Hour)
	for range 1000 {
		w.log(slog.LevelInfo, "flood")
	}
	if n := w.lines("msg=flood"); n != Burst {
		t.Errorf("after a pause: %d lines", n)
	}
}

// Rare lines are all logged, unchanged.
func TestRareLines(t *testing.T) {
	w := start()
	for range 1000 {
		w.log(slog.LevelInfo, "rare", "addr", "192.0.2.1")
		w.now = w.now.Add(2 * time.Second)
	}
	if text := w.out.String(); strings.Contains(text, keyLeftOut) {
		t.Error("lines were dropped")
	}
	if n := w.lines("msg=rare"); n != 1000 {
		t.Errorf("%d lines", n)
	}
}

// One address that repeats a warning hides no other address. Only warnings count by address: the
// lines of many phones behind one address are all wanted.
func TestAddresses(t *testing.T) {
	w := start()
	loud, quiet := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for range 1000 {
		w.log(slog.LevelWarn, "rejected", "status", 403, "addr", loud)
	}
	w.log(slog.LevelWarn, "rejected", "status", 403, "addr", quiet)
	text := w.out.String()
	if n := strings.Count(text, "addr=192.0.2.1"); n != PerAddress {
		t.Errorf("%d lines of the noisy address", n)
	}
	if !strings.Contains(text, fmt.Sprint("addr=192.0.2.2 ", keyLeftOut, "=", 1000-PerAddress)) {
		t.Errorf("the other address is missing: %s", text)
	}
	w.out.Reset()
	w.now = w.now.Add(time.Minute)
	for range 10 {
		w.log(slog.LevelWarn, "rejected", "addr", loud)
		w.log(slog.LevelInfo, "connected", "addr", loud)
	}
	if n := strings.Count(w.out.String(), "msg=connected"); n != 10 {
		t.Errorf("%d of 10 phones of one address", n)
	}
	if n := w.lines("msg=rejected"); n != PerAddress {
		t.Errorf("a minute later: %d lines", n)
	}
	// A flood from very many addresses is bounded too.
	for i := range 10_000 {
		w.log(slog.LevelWarn, "rejected", "addr", netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	if n := w.lines("msg=rejected"); n > Burst {
		t.Errorf("%d lines", n)
	}
	if n := w.h.(*handler).sampler.addrs.Len(); n > Burst+PerMinute {
		t.Errorf("%d addresses are remembered", n)
	}
}

// Messages that contain text from outside are bounded too, in lines and in memory.
func TestMessagesThatDiffer(t *testing.T) {
	w := start()
	w.log(slog.LevelInfo, "known")
	for i := range 100_000 {
		w.log(slog.LevelInfo, fmt.Sprint("made up ", i))
	}
	if n := w.lines("made up"); n > maxMessages+Burst {
		t.Errorf("%d lines", n)
	}
	if n := len(w.h.(*handler).sampler.messages); n > maxMessages+1 {
		t.Errorf("%d messages are remembered", n)
	}
	w.log(slog.LevelInfo, "known")
	if n := w.lines("known"); n != 1 {
		t.Error("they hide a message that was known")
	}
}

// Setting the clock back neither stops the log nor lifts the bound.
func TestClockSetBack(t *testing.T) {
	w := start()
	for range 1000 {
		w.log(slog.LevelWarn, "flood", "addr", "192.0.2.1")
		w.log(slog.LevelInfo, "flood too")
	}
	w.lines("")
	w.now = w.now.Add(-24 * time.Hour)
	for range 1000 {
		w.log(slog.LevelInfo, "flood too")
	}
	w.log(slog.LevelWarn, "flood", "addr", "192.0.2.1")
	if n := w.lines("flood too"); n != 0 {
		t.Errorf("%d lines", n)
	}
	w.now = w.now.Add(time.Minute)
	w.log(slog.LevelInfo, "flood too")
	w.log(slog.LevelWarn, "flood", "addr", "192.0.2.1")
	if n := w.lines("flood"); n != 2 {
		t.Errorf("%d lines of two a minute later", n)
	}
}

// Derived loggers share one bound and keep their attributes and groups.
func TestDerivedLoggers(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	a, b := log.With("component", "a"), log.WithGroup("b")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range Burst {
				a.Warn("flood")
				b.Warn("flood", "n", 1)
				log.Info("below the level")
			}
		})
	}
	wg.Wait()
	text := out.String()
	if n := strings.Count(text, "msg=flood"); n < Burst || n > Burst+PerMinute {
		t.Errorf("%d lines", n)
	}
	if !strings.Contains(text, "component=a") || !strings.Contains(text, "b.n=1") || strings.Contains(text, "below") {
		t.Errorf("%.300s", text)
	}
}

func BenchmarkLine(b *testing.B) {
	log := slog.New(New(slog.NewTextHandler(&bytes.Buffer{}, nil)))
	b.ReportAllocs()
	for b.Loop() {
		log.Warn("a device was refused", "addr", "192.0.2.1", "code", "auth_failed")
	}
}
