package traps

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// What a flood may cost at its height, and what may be left of it. The bounds of one gateway are 64 MiB of what is being
// stored, 64 MiB of open messages, a line of 8 MiB, and what the garbage collector leaves for later: twice that at least.
const (
	height = 512 << 20
	rest   = 96 << 20
)

// ops writes many ops in few messages, as fast as the server takes them. It returns how many were written before the
// server closed the connection.
func ops(t testing.TB, g *gateway.Raw, many int, action func(i int) map[string]any) (written int) {
	t.Helper()
	var lines []byte
	for i := range many {
		b := value[[]byte](t)(json.Marshal(map[string]any{"type": "outbound", "requestId": fmt.Sprint("flood-", i), "action": action(i)}))
		lines = append(append(lines, b...), '\n')
		if len(lines) > 256<<10 || i == many-1 {
			if g.Line(soon(t), lines) != nil {
				return written
			}
			written, lines = i+1, lines[:0]
		}
	}
	return written
}

// A gateway that floods the server, in every way there is: the memory stays bounded, the devices of another gateway do not
// notice, and afterwards it is taken back as if nothing had been.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := startFor(t, map[string]string{"flood": "a,user:a", "good": "*"})
	good := scripted(t, config(s, "good"))
	a, b := e2e.NewPhone(t, s, "a"), e2e.NewPhone(t, s, "b")
	b.Online()
	b.Ask("echo 0 first", "reply 0 first")
	before := s.Memory(t)
	most := watch(t, s)
	n := 0
	others := func(when string) { // the other gateway's device, in the middle of it
		n++
		b.Ask(fmt.Sprintf("echo %d %s", n, when), fmt.Sprintf("reply %d %s", n, when))
	}

	const many = 100_000
	g := hello(t, config(s, "flood"))
	kinds := []func(i int) map[string]any{
		func(int) map[string]any { return map[string]any{"op": "typing", "chat_id": "a"} },
		func(i int) map[string]any {
			return map[string]any{"op": "react", "chat_id": "a", "message_id": fmt.Sprint("m", i), "emoji": "✅"}
		},
		func(i int) map[string]any {
			return map[string]any{"op": "edit", "chat_id": "a", "message_id": fmt.Sprint("unknown-", i), "content": "x ▉"}
		},
		func(i int) map[string]any {
			return map[string]any{"op": "draft", "chat_id": "a", "draft_id": i, "content": strings.Repeat("d", i%500)}
		},
		func(i int) map[string]any { return map[string]any{"op": "fly", "chat_id": fmt.Sprint("b-", i)} },
		func(i int) map[string]any {
			return map[string]any{"op": "send", "chat_id": fmt.Sprint("nobody-", i), "content": "x"} // of the other gateway
		},
	}
	for done := 0; done < many; { // where it is too much at a time, the link is cut with "try later", and goes on
		w := ops(t, g, many-done, func(i int) map[string]any { return kinds[i%len(kinds)](done + i) })
		if w == many-done {
			if _, err := g.Do(soon(t), map[string]any{"op": "typing", "chat_id": "a"}); err == nil {
				until(t, "the answers", func() bool { all, _ := g.Answered(); return all == w })
				break
			}
		}
		if code := ends(t, g); code != 1013 {
			t.Errorf("cut off after %d ops, with %d", done+w, code)
		}
		others("while ops flood")
		done += max(w, 1)
		g = hello(t, config(s, "flood"))
	}
	others("after ops flooded")
	g.Close()

	// Messages to be stored, far more than the disk takes: the link may be cut, with "try later".
	g = hello(t, config(s, "flood"))
	ops(t, g, 20_000, func(i int) map[string]any {
		return map[string]any{"op": "send", "chat_id": "a", "content": fmt.Sprint("flood ", i, strings.Repeat(" x", 1000))}
	})
	others("while messages flood")
	endsOrNot(t, g)

	// Lines without end, and lines of the greatest length.
	g = hello(t, config(s, "flood"))
	for range 12 {
		if g.Line(soon(t), []byte(strings.Repeat("y", 1<<20))) != nil {
			break
		}
	}
	if code := ends(t, g); code != 1009 {
		t.Errorf("a line without end was closed with %d", code)
	}
	g = hello(t, config(s, "flood"))
	ops(t, g, 12, func(i int) map[string]any {
		return map[string]any{"op": "draft", "chat_id": "a", "draft_id": 7, "content": fmt.Sprint(i, strings.Repeat("z", 7<<20))}
	})
	others("while lines flood")
	endsOrNot(t, g)

	// Messages that are begun and never ended, one after the other: each ends the one before.
	g = hello(t, config(s, "flood"))
	ops(t, g, 150, func(i int) map[string]any {
		return map[string]any{"op": "send", "chat_id": "a", "content": fmt.Sprint(i, strings.Repeat("o", 500<<10), " ▉"), "metadata": map[string]any{"expect_edits": true}}
	})
	others("while messages are begun")
	endsOrNot(t, g)

	// And many that stay open: more than is held.
	g = hello(t, config(s, "flood"))
	ops(t, g, 15, func(i int) map[string]any {
		return map[string]any{"op": "draft", "chat_id": "a", "draft_id": i, "content": fmt.Sprint(i, strings.Repeat("z", 7<<20)), "metadata": map[string]any{"reply_to_message_id": fmt.Sprint("m", i)}}
	})
	if code := ends(t, g); code != 1013 {
		t.Errorf("open messages without end were closed with %d", code)
	}
	others("while messages stay open")

	if peak := most(); peak > before+height {
		t.Errorf("the flood cost %.0f MiB", (peak-before)/(1<<20))
	} else {
		t.Logf("%.0f MiB before, %.0f MiB at most", before/(1<<20), peak/(1<<20))
	}
	// It is a gateway like any other again.
	g = hello(t, config(s, "flood"))
	mark := a.Mark()
	a.Submit("are you well?")
	for {
		e := value[gateway.Event](t)(g.Take(soon(t)))
		if e.Text == "are you well?" {
			ok(t, g.Turn(soon(t), e, "well"))
			break
		}
	}
	e2e.WaitFor(a, mark, 3*patience, "the answer", func(m device.Message) bool { return m.Final && m.Text == "well" })
	settled(t, s, before+rest)
	if n := len(s.LogTail(1 << 30)); n > 256<<10 {
		t.Errorf("the log has grown to %d KiB, and ends with\n%s", n>>10, s.LogTail(5))
	}
	if len(good.Faults()) != 0 || good.Counts().Links != 1 {
		t.Errorf("the other gateway: %+v, faults %v", good.Counts(), good.Faults())
	}
}

// endsOrNot waits until the server has worked on everything, or has cut the connection for it, which must say why.
func endsOrNot(t testing.TB, g *gateway.Raw) {
	t.Helper()
	if _, err := g.Do(soon(t), map[string]any{"op": "typing", "chat_id": "a"}); err == nil {
		g.Close()
	} else if code := ends(t, g); code != 1013 && code != 1009 {
		t.Errorf("closed with %d", code)
	}
}

// Ops for a hundred thousand conversations that do not exist leave nothing behind, and nobody else waits for them.
func TestFloodOfStrangers(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Submit("before")
	e := take(t, g, "before")
	before := s.Memory(t)
	most := watch(t, s)
	const many = 100_000
	began := time.Now()
	written := ops(t, g, many, func(i int) map[string]any {
		a := map[string]any{"chat_id": fmt.Sprint("nobody-", i), "content": "x", "draft_id": i, "message_id": "m", "metadata": map[string]any{}}
		a["op"] = []string{"draft", "edit", "typing", "send"}[i%4]
		return a
	})
	all := 0
	until(t, "the answers, or the end of the connection", func() bool {
		all, _ = g.Answered()
		return all == many || written < many || gone(g)
	})
	if all < many { // it was too much at a time, perhaps of what was written already: cut off and taken back
		if code := ends(t, g); code != 1013 {
			t.Errorf("closed with %d", code)
		}
		g = hello(t, config(s, ""))
	}
	t.Logf("%d ops in %s", written, time.Since(began).Round(time.Millisecond))
	ok(t, g.Turn(soon(t), e, "after"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "after" })
	if peak := most(); peak > before+height {
		t.Errorf("the flood cost %.0f MiB", (peak-before)/(1<<20))
	} else {
		t.Logf("%.0f MiB before, %.0f MiB at most", before/(1<<20), peak/(1<<20))
	}
	settled(t, s, before+rest)
	if n := len(s.LogTail(1 << 30)); n > 256<<10 {
		t.Errorf("the log has grown to %d KiB, and ends with\n%s", n>>10, s.LogTail(5))
	}
}
