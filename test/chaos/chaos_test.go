package chaos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/gateway"
)

// shortRun is how long things go wrong where nobody asks for more.
const shortRun = 9 * time.Second

// length reads how long a run is to be: CHAOS_OPS counts what phones and the sender do, CHAOS_TIME is a duration.
func length(t *testing.T) (ops int, d time.Duration) {
	if v := os.Getenv("CHAOS_OPS"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			t.Fatalf("CHAOS_OPS is %q: give a number from 1", v)
		}
		return n, 0
	}
	if v := os.Getenv("CHAOS_TIME"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil || d <= 0 {
			t.Fatalf("CHAOS_TIME is %q: give a duration such as 10m", v)
		}
		return 0, d
	}
	return 0, shortRun
}

// TestChaos lets everything go wrong at once, and then demands every promise.
func TestChaos(t *testing.T) {
	rng, seed := newRand(t)
	ops, d := length(t)
	srv := newServer(t)
	if err := os.Mkdir(srv.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := srv.serveTwo(); err != nil {
		t.Fatal(err)
	}
	if seed%2 == 0 {
		srv.sync = "interval" // none of the faults is one that it may lose anything by
	}
	usable := faults
	disk := mountDisk(srv.data())
	if disk {
		t.Cleanup(func() {
			srv.close()
			unmountDisk(srv.data())
		})
	} else {
		t.Log("no mount is allowed here: the disk does not get full")
		usable = nil
		for _, f := range faults {
			if f.name != "the disk is full" {
				usable = append(usable, f)
			}
		}
	}
	srv.start()
	w := newWorldOn(t, srv, seed, gateway.Config{Form: gateway.Recovered, Kind: true, Patient: true}, true)
	w.long = ops > 0 || d > shortRun
	w.warm()
	before := w.resources()
	began := time.Now()
	w.begin()
	done := w.wreak(plan(rng, usable, len(w.phones)), func() bool {
		return ops > 0 && w.ops() >= ops || ops == 0 && time.Since(began) >= d || t.Failed()
	})
	took := time.Since(began)
	w.finish()
	if !t.Failed() {
		w.comeBack(before)
	}
	t.Log("\n" + w.table(done, took, seed))
}

// ops counts what phones and the sender have done: messages and files sent, cards answered, deliveries.
func (w *world) ops() (n int) {
	for _, p := range w.phones {
		p.mu.Lock()
		n += len(p.sent) + len(p.cards)
		p.mu.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return n + len(w.deliveries)
}

// table tells what was done and how it ended.
func (w *world) table(done map[*fault]int, took time.Duration, seed uint64) string {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "fault\ttimes")
	total := 0
	for _, f := range faults {
		fmt.Fprintf(t, "%s\t%d\n", f.name, done[f])
		total += done[f]
	}
	fmt.Fprintf(t, "all\t%d\n", total)
	result := "every promise kept"
	if w.t.Failed() {
		result = "BROKEN, see above"
	}
	lives, again := 0, 0
	for _, p := range w.phones {
		if p.own != nil {
			lives, again = lives+p.own.lives, again+p.own.again
		}
	}
	fmt.Fprintf(t, "\nslow disk\t%d pings answered, the slowest after %s", w.slowPings, w.slowestPing.Round(time.Millisecond))
	fmt.Fprintf(t, "\nphones\t%d processes had %d lives, in which %d events were shown again", ownProcesses, lives, again)
	fmt.Fprintf(t, "\noperations\t%d in %s\nresult\t%s\nseed\t%d\nsync\t%s\nmachine\t%d cores, %s %s\n", w.ops(), took.Round(time.Second), result, seed, w.srv.sync, runtime.NumCPU(),
		runtime.GOOS, runtime.GOARCH)
	_ = t.Flush()
	return b.String()
}

// A server that is started on a full disk says what is wrong and ends; with room it starts.
func TestStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	srv := newServer(t)
	if err := os.Mkdir(srv.data(), 0o700); err != nil {
		t.Fatal(err)
	}
	if !mountDisk(srv.data()) {
		t.Skip("no mount is allowed here")
	}
	t.Cleanup(func() {
		srv.close()
		unmountDisk(srv.data())
	})
	srv.filled.Store(true)
	if err := fillDisk(srv.data(), 8<<10); err != nil {
		t.Fatal(err)
	}
	srv.start()
	wait := func(what string, is func() bool) {
		t.Helper()
		for end := time.Now().Add(restartWithin); !is(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("waited in vain until %s\n%s", what, srv.tail(20))
			}
		}
	}
	wait("it says what is wrong", func() bool { return strings.Contains(srv.tail(60), noRoom) })
	if err := freeDisk(srv.data()); err != nil {
		t.Fatal(err)
	}
	wait("it has started", func() bool { return strings.Contains(srv.tail(60), "listening") })
}

// A phone whose clock is set back still finds out that its connection is half open.
func TestPhoneClockSetBack(t *testing.T) {
	t.Parallel()
	_, seed := newRand(t)
	w := newWorldOn(t, startServer(t), seed, gateway.Config{Form: gateway.Recovered, Kind: true}, true)
	p := w.phones[phones-1]
	online := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.state[device.Online]
	}
	before := online()
	p.own.controls.Step(-3 * time.Hour)
	p.net.set(func(c *wire) { c.swallow = true })
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	if !w.wait(ctx, func() bool { return online() > before }) {
		t.Fatalf("it never connected again\n%s", w.srv.tail(20))
	}
}
