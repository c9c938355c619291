package ratelimit

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var began = time.Unix(1_800_000_000, 0)

// clock is a test's time.
type clock struct{ at time.Time }

func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func TestBucket(t *testing.T) {
	c := &clock{began}
	b := NewBucket(PerMinute(3, 6))
	for i := range 3 {
		if wait := b.Take(c.at); wait != 0 {
			t.Fatal(i, wait)
		}
	}
	if wait := b.Take(c.at); wait != 10*time.Second {
		t.Error("empty:", wait)
	}
	c.pass(4 * time.Second)
	if wait := b.Wait(c.at); wait < 5999*time.Millisecond || wait > 6*time.Second {
		t.Error("4 seconds later:", wait)
	}
	c.pass(-time.Hour)
	if wait := b.Take(c.at); wait <= 0 || wait > 10*time.Second {
		t.Error("the clock was set back:", wait)
	}
	c.pass(10 * time.Second)
	if b.Take(c.at) != 0 || b.Take(c.at) == 0 {
		t.Error("not one event after its time")
	}
	c.pass(time.Hour)
	if !b.full(c.at) {
		t.Error("not full")
	}
}

// A held event counts as used until it is settled, and afterwards only if it was.
func TestHold(t *testing.T) {
	c := &clock{began}
	b := NewBuckets[string](PerMinute(2, 2), 10, c.now)
	first, _ := b.Hold("a")
	second, _ := b.Hold("a")
	if settle, wait := b.Hold("a"); settle != nil || wait <= 0 {
		t.Fatal("a third event:", wait)
	}
	c.pass(time.Hour)
	if _, wait := b.Hold("a"); wait <= 0 {
		t.Fatal("a held event came back by itself")
	}
	first(false)
	if b.Wait("a") != 0 || b.Take("a") != 0 {
		t.Error("a released event did not come back")
	}
	second(true)
	if wait := b.Take("a"); wait != 30*time.Second {
		t.Error("both are used:", wait)
	}
	if b.Take("b") != 0 {
		t.Error("another key")
	}
	c.pass(time.Minute)
	third, _ := b.Hold("a")
	third(false)
	b.Take("c")
	if n := b.Len(); n != 1 {
		t.Errorf("%d keys are remembered, want the one in use", n)
	}
}

// However many keys come, those that are full go first.
func TestBucketsAreBounded(t *testing.T) {
	c := &clock{began}
	b := NewBuckets[int](PerMinute(1, 1), 50, c.now)
	b.Take(-1)
	for i := range 1000 {
		if settle, wait := b.Hold(i); wait == 0 {
			settle(false)
		}
	}
	if b.Take(-1) == 0 {
		t.Error("full buckets pushed a used one out")
	}
	for i := range 1000 {
		b.Take(i)
	}
	if n := b.Len(); n != 50 {
		t.Errorf("%d keys", n)
	}
}

// No period of a window's length has more events than it allows, however they are spread.
func TestWindowsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &clock{began}
		w := NewWindows[string](5, time.Minute, 10, c.now)
		var allowed []time.Time
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			c.pass(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * time.Second)
			wait, ok := w.Allow("a")
			if ok != (wait == 0) || wait > time.Minute {
				t.Fatal(wait, ok)
			}
			if !ok {
				continue
			}
			allowed = append(allowed, c.at)
			if n := len(allowed); n > 5 && allowed[n-1].Sub(allowed[n-6]) < time.Minute {
				t.Fatal("6 events in a minute")
			}
		}
	})
}

func TestWindowsAreBounded(t *testing.T) {
	c := &clock{began}
	w := NewWindows[string](1, time.Minute, 10, c.now)
	for i := range 100 {
		w.Allow(fmt.Sprint(i))
	}
	if n := w.Len(); n != 10 {
		t.Errorf("%d keys", n)
	}
	c.pass(-time.Hour)
	if _, ok := w.Allow("99"); !ok {
		t.Error("a clock that was set back stops a window")
	}
	c.pass(2 * time.Hour)
	for range 3 {
		w.Allow("again")
	}
	if n := w.Len(); n != 1 {
		t.Errorf("%d keys after an hour", n)
	}
}

func TestNetwork(t *testing.T) {
	for in, want := range map[string][2]string{
		"192.0.2.7":                 {"192.0.2.7/32", "192.0.2.0/24"},
		"::ffff:192.0.2.7":          {"192.0.2.7/32", "192.0.2.0/24"},
		"2001:db8:1:2:ffff::1%eth0": {"2001:db8:1:2::/64", "2001:db8:1::/48"},
	} {
		addr := netip.MustParseAddr(in)
		if n, r := Network(addr).String(), Region(addr).String(); n != want[0] || r != want[1] {
			t.Errorf("%s: network %s, region %s", in, n, r)
		}
	}
	if Network(netip.Addr{}).IsValid() {
		t.Error("an invalid address has a network")
	}
}

func TestConcurrently(t *testing.T) {
	b, w := NewBuckets[int](PerMinute(10, 10), 4, time.Now), NewWindows[int](5, time.Second, 4, time.Now)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 500 {
				if settle, wait := b.Hold((i + n) % 8); wait == 0 {
					settle(n%2 == 0)
				}
				w.Allow((i + n) % 8)
			}
		})
	}
	wg.Wait()
}
