package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/gateway"
)

// restartWithin is how long after a signal a server is given to end: SIGTERM is to be clean within ten seconds.
const restartWithin = 12 * time.Second

// TestKill kills the server at 20 moments, in the midst of accepts, streams, decisions, deliveries and files.
func TestKill(t *testing.T) { kill(t, gateway.Recovered, 20, 3*time.Second) }

// TestKillSameText is TestKill for a gateway that sends the very same frame again when it missed the result.
func TestKillSameText(t *testing.T) { kill(t, gateway.SameText, 10, 2*time.Second) }

func kill(t *testing.T, form gateway.Form, times int, atMost time.Duration) {
	rng, seed := newRand(t)
	w := newWorld(t, seed, gateway.Config{Form: form, Kind: true})
	w.begin()
	for i := range times {
		w.await(rng, kinds[i%len(kinds)], 300*time.Millisecond, atMost)
		w.note(fmt.Sprintf("kill %d", i+1))
		w.srv.signal(syscall.SIGKILL, restartWithin)
		w.srv.start()
	}
	w.finish()
}

// TestRestartPolitely stops the server three times as a person would: everybody is told 1001 (§1).
func TestRestartPolitely(t *testing.T) {
	rng, seed := newRand(t)
	w := newWorld(t, seed, gateway.Config{Form: gateway.Recovered, Kind: true})
	w.begin()
	for i, kind := range []string{"stream", "card", "accept"} {
		w.connected()
		w.await(rng, kind, 2*time.Second, 5*time.Second)
		w.note(fmt.Sprintf("stop %d", i+1))
		w.srv.signal(syscall.SIGTERM, restartWithin)
		w.srv.start()
	}
	w.finish()
	for _, p := range w.phones {
		p.mu.Lock()
		if p.away < 3 {
			t.Errorf("%s was told 1001 %d times, the server stopped 3 times", p.id, p.away)
		}
		p.mu.Unlock()
	}
	if n := w.gws[0].Counts().Closes[1001]; n != 3 {
		t.Errorf("the gateway was told 1001 %d times, the server stopped 3 times", n)
	}
}

// TestGatewayDrops cuts the gateway's link at 30 moments.
func TestGatewayDrops(t *testing.T) {
	for name, form := range map[string]gateway.Form{"recovered": gateway.Recovered, "same": gateway.SameText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng, seed := newRand(t)
			w := newWorld(t, seed, gateway.Config{Form: form, Kind: true})
			w.begin()
			for i := range 30 {
				w.await(rng, kinds[i%len(kinds)], 100*time.Millisecond, 900*time.Millisecond)
				w.gws[0].Drop()
			}
			w.finish()
		})
	}
}

// finish settles, checks, and tells the first broken promise with all that helps to understand it.
func (w *world) finish() {
	w.t.Helper()
	began := time.Now()
	rest := w.settle()
	settled := time.Since(began)
	found := w.check()
	if rest != nil { // what follows may be on its way still, and not lost
		stuck := violation{promise: rested, text: rest.Error(), word: "--"}
		if len(found) > 0 {
			stuck.chat, stuck.word = found[0].chat, found[0].word
		}
		found = slices.Insert(found, 0, stuck)
	}
	w.summary(settled)
	if len(found) == 0 {
		return
	}
	first := found[0]
	var b strings.Builder
	fmt.Fprintf(&b, "BROKEN: %s\n%s\nseed %d", first.promise, first.text, w.seed)
	if rest != nil {
		for _, p := range w.phones {
			if !p.quiet() {
				p.mu.Lock()
				fmt.Fprintf(&b, "\n%s waits: %d without receipt, %d without reply, online %v", p.id, p.app.pending(), len(p.open), p.app.online())
				p.mu.Unlock()
			}
		}
	}
	counts := map[string]int{}
	for _, v := range found {
		counts[v.promise]++
	}
	for promise, n := range counts {
		fmt.Fprintf(&b, "\n%4d × %s", n, promise)
	}
	for i, v := range found[1:] {
		if i == 25 {
			fmt.Fprintf(&b, "\n  … and %d more", len(found)-1-i)
			break
		}
		fmt.Fprintf(&b, "\n  also: %s", v.text)
	}
	if first.word != "" {
		gw := w.gwOf(first.chat)
		lines := gw.Trace(first.chat, number(first.word), 12)
		if len(lines) == 0 { // it never got there: what did is why
			lines = gw.Trace(first.chat, "", 0)
			lines = lines[max(0, len(lines)-60):]
		}
		fmt.Fprintf(&b, "\nthe gateway's view (^ to the server, v from it):\n%s", strings.Join(lines, "\n"))
	}
	fmt.Fprintf(&b, "\nthe end of the server's log:\n%s", w.srv.tail(40))
	w.t.Error(b.String())
}

// number is the part of a text that is unique to it, and looks the same in the trace.
func number(text string) string {
	text, _ = strings.CutPrefix(text, gateway.RecoveredPrefix)
	for _, word := range strings.Fields(text) {
		if strings.HasPrefix(word, "phone-") {
			return strings.TrimRight(word, ",")
		}
	}
	return text
}

// summary says what the test put the server through.
func (w *world) summary(settled time.Duration) {
	sent, got, cards, echos, interrupted := 0, 0, 0, 0, 0
	var offline int
	slowest := w.phones[0]
	for _, p := range w.phones {
		p.mu.Lock()
		sent += len(p.sent)
		got += len(p.got)
		cards += len(p.cards)
		echos += len(p.echos)
		offline += p.state[device.Waiting]
		if p.slow > slowest.slow {
			slowest = p
		}
		for _, g := range p.got {
			if g.interrupted {
				interrupted++
			}
		}
		p.mu.Unlock()
	}
	w.t.Logf("%d messages up, %d down (%d cut), %d cards, %d echos, %d deliveries, %d reconnects; broken in the midst of %v; settled in %s; the slowest reply took %s",
		sent, got, interrupted, cards, echos, len(w.deliveries), offline, maps.Clone(w.hits), settled.Round(time.Millisecond), slowest.slow.Round(time.Millisecond))
	for _, gw := range w.gws {
		w.t.Logf("gateway %+v", gw.Counts())
	}
	if slowest.slow > 20*time.Second {
		w.t.Logf("the way of %s, which waited for %s:\n%s", slowest.slowN, slowest.id,
			strings.Join(w.gwOf(slowest.chat).Gaps(slowest.chat, slowest.slowTo.Add(-slowest.slow), slowest.slowTo, 2*time.Second), "\n"))
		w.t.Logf("turns that the server ended for want of a sign of life:\n%s", strings.Join(w.srv.lines("ending it"), ""))
	}
}
