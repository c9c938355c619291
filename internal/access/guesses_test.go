package access

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hermes-mobile/internal/ratelimit"
)

func wrong(g *Guard, addr netip.Addr, n int) {
	for range n {
		g.Wrong(addr)
	}
}

func TestGuardDoubles(t *testing.T) {
	c := newClock()
	g := NewGuard(c.now)
	a, other := netip.MustParseAddr("203.0.113.5"), netip.MustParseAddr("203.0.113.6")
	for _, minutes := range []int{1, 2, 4, 8, 15, 15} {
		wrong(g, a, 9)
		if _, blocked := g.Blocked(a); blocked {
			t.Fatal("blocked after 9")
		}
		g.Wrong(a)
		if left, blocked := g.Blocked(a); !blocked || left != time.Duration(minutes)*time.Minute {
			t.Fatal(left, blocked, "want", minutes)
		}
		if _, blocked := g.Blocked(other); blocked {
			t.Fatal("another is blocked")
		}
		c.pass(time.Duration(minutes) * time.Minute)
		if _, blocked := g.Blocked(a); blocked {
			t.Fatal("still blocked")
		}
	}
	c.pass(15*time.Minute + time.Second)
	g.Blocked(other)
	if g.known.Len() != 0 {
		t.Error("not forgotten")
	}
	wrong(g, a, 10)
	if left, _ := g.Blocked(a); left != time.Minute {
		t.Error("starts anew with", left)
	}
}

func TestGuardWindow(t *testing.T) {
	c := newClock()
	g := NewGuard(c.now)
	a := netip.MustParseAddr("203.0.113.5")
	for range 100 { // one every 7 seconds is 9 a minute
		g.Wrong(a)
		c.pass(7 * time.Second)
		if _, blocked := g.Blocked(a); blocked {
			t.Fatal("blocked")
		}
	}
}

func TestGuardCountsDuringABlock(t *testing.T) {
	g := NewGuard(newClock().now)
	a := netip.MustParseAddr("203.0.113.5")
	wrong(g, a, 20)
	if left, _ := g.Blocked(a); left != 2*time.Minute {
		t.Error(left)
	}
}

func TestGuardKeys(t *testing.T) {
	g := NewGuard(newClock().now)
	wrong(g, netip.MustParseAddr("2001:db8:1:2::1"), 5)
	wrong(g, netip.MustParseAddr("2001:db8:1:2:ffff::%eth0"), 5)
	wrong(g, netip.MustParseAddr("::ffff:192.0.2.1"), 10)
	wrong(g, netip.Addr{}, 10)
	for s, want := range map[string]bool{"2001:db8:1:2::9": true, "2001:db8:1:3::1": false, "192.0.2.1": true, "192.0.2.2": false, "::ffff:192.0.2.2": false} {
		if _, blocked := g.Blocked(netip.MustParseAddr(s)); blocked != want {
			t.Error(s, blocked)
		}
	}
	if _, blocked := g.Blocked(netip.Addr{}); !blocked {
		t.Error("no address at all")
	}
}

func TestGuardIsBounded(t *testing.T) {
	g := NewGuard(newClock().now)
	g.known = ratelimit.NewTable[netip.Prefix, guesses](100)
	blocked := netip.MustParseAddr("203.0.113.5")
	wrong(g, blocked, 10)
	a := netip.MustParseAddr("10.0.0.0")
	for range 1000 {
		g.Wrong(a)
		a = a.Next()
	}
	if g.known.Len() != 100 {
		t.Error(g.known.Len())
	}
	if _, still := g.Blocked(blocked); !still {
		t.Error("the blocked one was pushed out")
	}
	for range 200 { // when all are blocked the oldest goes all the same
		wrong(g, a, 10)
		a = a.Next()
	}
	if g.known.Len() != 100 {
		t.Error(g.known.Len())
	}
}

func TestGuardProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		g := NewGuard(c.now)
		a := netip.MustParseAddr("203.0.113.5")
		var times []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.pass(time.Duration(rapid.IntRange(0, 90).Draw(t, "s")) * time.Second)
			if _, blocked := g.Blocked(a); !blocked {
				g.Wrong(a)
				times = append(times, c.now())
			}
			left, blocked := g.Blocked(a)
			if blocked != (left > 0) || left > 15*time.Minute {
				t.Fatal(left, blocked)
			}
			// never more than 10 guesses in any minute
			if n := len(times); n > 10 && times[n-1].Sub(times[n-11]) < time.Minute {
				t.Fatal("11 guesses in a minute")
			}
		}
	})
}

func TestGuardConcurrently(t *testing.T) {
	g := NewGuard(time.Now)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			a := netip.AddrFrom4([4]byte{10, 0, 0, byte(i % 2)})
			for range 500 {
				g.Wrong(a)
				g.Blocked(a)
			}
		})
	}
	wg.Wait()
}

func TestLimiter(t *testing.T) {
	c := newClock()
	l := NewLimiter(c.now)
	for i := range 5 {
		if _, ok := l.Allow("tel-1"); !ok {
			t.Fatal(i)
		}
		c.pass(time.Second)
	}
	for range 3 {
		if left, ok := l.Allow("tel-1"); ok || left != 55*time.Second {
			t.Fatal(left, ok)
		}
	}
	if _, ok := l.Allow("tel-2"); !ok {
		t.Fatal("another id")
	}
	c.pass(55 * time.Second)
	if _, ok := l.Allow("tel-1"); !ok {
		t.Fatal("a minute after the first")
	}
	if _, ok := l.Allow("tel-1"); ok {
		t.Fatal("only one was over")
	}
	c.pass(2 * time.Minute)
	l.Allow("tel-3")
	if l.Len() != 1 {
		t.Error("not forgotten", l.Len())
	}
}
