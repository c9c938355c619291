package relay

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/internal/agent"
)

// cut waits until the agent has closed the connection, with this code.
func (p *peer) cut(code websocket.StatusCode) {
	p.r.t.Helper()
	select {
	case <-p.gone:
	case <-time.After(10 * time.Second):
		p.r.t.Fatal("the connection stays")
	}
	if p.code != code {
		p.r.t.Errorf("closed with %d, want %d", p.code, code)
	}
}

// doc/hermes/relay.md §7, row by row: what makes a gateway deaf waits while a turn runs, what does not may pass. The one exception
// is the answer to an approval in an older gateway, for which there is no other way.
func TestWedgeTable(t *testing.T) {
	for name, version := range map[string]Version{"older": Older, "newer": Newer} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Known = map[string]Version{"gw": version} })
			p := r.dial()
			// Nothing runs: everything goes at once, commands too. An older gateway is given a rest before each.
			for i, s := range []string{"/status", "/new", "/stop", "/approve", "hello"} {
				n := int64(i + 1)
				rc := r.say("tel", n, s)
				ev := p.event()
				if ev["text"] != s {
					t.Fatalf("%q came as %v", s, ev["text"])
				}
				r.until("taken", func() bool { return rc.is(nil) })
				mid := ev["message_id"].(string)
				if version == Newer {
					p.react("tel", mid, "👀", false)
				}
				p.reply("tel", mid, fmt.Sprint("done ", n))
				if version == Newer {
					p.end("tel", mid)
				}
				r.pass(restSession + time.Second)
				if len(r.h.dones("tel")) != i+1 {
					t.Fatalf("%q did not end", s)
				}
			}
			// A turn runs that asks nothing.
			rc := r.say("tel", 10, "work")
			mid := p.event()["message_id"].(string)
			r.until("taken", func() bool { return rc.is(nil) })
			if version == Newer {
				p.react("tel", mid, "👀", false)
				p.ok(obj("op", "typing", "chat_id", "tel"))
			}
			admitted := func(when string, want map[string]bool) {
				t.Helper()
				r.settle()
				for s, yes := range want {
					if r.a.Admits(text("tel", 11, s)) != yes {
						t.Errorf("%s: %q admitted: %v", when, s, !yes)
					}
				}
				for _, kind := range []agent.InputKind{agent.Voice, agent.Media} {
					if r.a.Admits(agent.Input{N: 11, Device: "tel", Kind: kind}) {
						t.Errorf("%s: a file is admitted", when)
					}
				}
			}
			commands := map[string]bool{"/approve": version == Older, "/approve session": version == Older, "/deny no": version == Older,
				"/new": false, "/reset": false, "/status": false, "/help": false, "/unknown": false, "/stop": true}
			admitted("in a turn", commands)
			admitted("in a turn", map[string]bool{"hello?": false, "": false}) // whether its busy ack is off cannot be known
			// It asks in words: the answer passes, and nothing else changes.
			p.ok(obj("op", "send", "chat_id", "tel", "content", "❓ Which color?"))
			r.pass(typingPaused + time.Second)
			admitted("in a question", commands)
			admitted("in a question", map[string]bool{"Blue": true})
			// The stop goes as an interrupt, whether it is a frame or words.
			rc = r.say("tel", 11, "/stop")
			p.expect("interrupt_inbound")
			r.until("stopped", func() bool { return rc.is(nil) })
			if version == Older {
				return
			}
			p.nothing()
			p.end("tel", mid)
			// The answer to a card goes to a running turn at once.
			p.turn("tel", 12, "rm")
			p.ok(approval("aa.1"))
			ans := r.answer(r.h.asks("tel")[0], agent.Answer{OptionID: "once"})
			if ev := p.event(); ev["prompt_response"] == nil || ev["text"] != "/once" {
				t.Errorf("%v", ev)
			}
			r.until("told", func() bool { return ans.is(nil) })
		})
	}
}

// A gateway that accepts the connection and never says hello is not taken for one that is there, and is cut off; others
// with the same id may come meanwhile.
func TestNeverSaysHello(t *testing.T) {
	r := newRig(t, nil)
	mute, _, err := r.dialAs("gw", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	rc := r.say("tel", 1, "hi")
	r.until("given back", func() bool { return rc.is(agent.ErrAway) })
	mute.ask(obj("op", "typing", "chat_id", "tel")) // ops alone are no hello
	mute.expect("outbound_result")
	r.pass(helloWithin - time.Second)
	if r.a.Status("tel").Online {
		t.Error("online without hello")
	}
	r.pass(2 * time.Second)
	mute.cut(closeTryLater)
	p := r.dial()
	r.say("tel", 2, "hi")
	p.event()
}

// A gateway that says hello and never acknowledges anything: nothing more is sent to it, what it says is shown, the owner
// is told. After two minutes it has to dial again; the event comes again under the same id, and is given up in the end.
func TestNeverAcks(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	first, second := r.say("one", 1, "first"), r.say("two", 2, "second")
	id := p.expect("inbound")["bufferId"]
	r.pass(2 * time.Second)
	if st := r.a.State().Gateways[0]; !st.Wedged || st.Wedges != 1 {
		t.Errorf("state %+v", st)
	}
	p.ok(obj("op", "send", "chat_id", "three", "content", "still talking"))
	same(t, r.texts("three"), "still talking")
	p.nothing()
	for try := 1; try < maxTries; try++ {
		r.pass(giveUpAfter + time.Second)
		p.cut(closeTryLater)
		p = r.dial()
		if again := p.expect("inbound"); again["bufferId"] != id {
			t.Fatalf("then came %v, want %v again", again["bufferId"], id)
		}
		p.nothing()
	}
	r.pass(giveUpAfter + time.Second)
	p.cut(closeTryLater)
	r.dial()
	r.until("given up", func() bool { return first.calls() == 1 })
	if first.is(nil) || first.is(agent.ErrAway) {
		t.Errorf("the event that nobody took: %v", first.got)
	}
	if second.calls() != 1 || !second.is(agent.ErrAway) {
		t.Errorf("the one behind it: %v", second.got)
	}
	p = r.dial()
	rc := r.say("two", 2, "second")
	if ev := p.event(); ev["text"] != "second" {
		t.Errorf("%v", ev)
	}
	r.until("taken", func() bool { return rc.is(nil) })
}

// Storing takes longer than a gateway waits (30 s): it had its answer before, gets no second one, and what it sends again
// is the same message.
func TestResultAfter31Seconds(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	r.h.set(true, nil)
	act := obj("op", "send", "chat_id", "tel", "content", "slowly stored", "reply_to", mid, "metadata", obj("notify", true, "reply_to_message_id", mid))
	id := p.ask(act)
	p.sync2()
	r.move(answerWithin + time.Second)
	res := p.expect("outbound_result")
	if res["requestId"] != id || res["result"].(map[string]any)["success"] == true {
		t.Errorf("%v", res)
	}
	r.move(10 * time.Second) // 31 s since it was sent
	r.h.release()
	r.until("stored", func() bool { return r.pendingStores() == 0 })
	p.nothing() // the late result is for nobody
	if res := p.op(act); res["success"] != true {
		t.Errorf("the repeat: %v", res)
	}
	p.end("tel", mid)
	same(t, r.texts("tel"), "slowly stored <app-1")
}

// The mark that says a turn was begun comes twice, as from a gateway with several profiles: one turn, one end.
func TestStartedTwice(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	p.react("tel", mid, "👀", false)
	p.reply("tel", mid, "answer")
	p.react("tel", mid, "👀", false)
	r.pass(3 * time.Second)
	if len(r.h.dones("tel")) != 0 {
		t.Error("ended by a mark that says that it begins")
	}
	p.react("tel", mid, "👀", true)
	p.react("tel", mid, "👀", true)
	p.end("tel", mid)
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 1 || d[0].Interrupted {
		t.Errorf("%v", d)
	}
	same(t, r.texts("tel"), "answer <app-1")
}

// A gateway that crashed with a card open and came back knows nothing of it: the person's answer is for nobody, and the
// turn ends by itself, since the gateway would type if it worked.
func TestCardOfACrashedGateway(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "rm")
	p.ok(approval("aa.1"))
	card := r.h.asks("tel")[0]
	r.pass(time.Second)
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	p = r.dial() // another process, which cannot be seen from a dial
	r.pass(time.Minute)
	if len(r.h.dones("tel")) != 0 {
		t.Fatal("ended while the person may still answer")
	}
	rc := r.answer(card, agent.Answer{OptionID: "once"})
	p.event() // it acknowledges, and ignores it
	r.until("told", func() bool { return rc.is(nil) })
	r.pass(idleUntyped - 2*time.Second)
	if len(r.h.dones("tel")) != 0 {
		t.Error("ended before it could have begun to work")
	}
	r.pass(3 * time.Second)
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 1 {
		t.Fatalf("the turn of a process that is gone: %v", d)
	}
	p.turn("tel", 2, "again")
}

// The same when it was no crash but a lost link: the gateway works on, and its turn goes on.
func TestCardAfterALostLink(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "rm")
	p.ok(approval("aa.1"))
	card := r.h.asks("tel")[0]
	r.pass(time.Second)
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	p = r.dial()
	rc := r.answer(card, agent.Answer{OptionID: "once"})
	p.event()
	r.until("told", func() bool { return rc.is(nil) })
	for range 30 {
		r.pass(2 * time.Second)
		p.ok(obj("op", "typing", "chat_id", "tel"))
	}
	if len(r.h.dones("tel")) != 0 {
		t.Fatal("ended while it works")
	}
	p.reply("tel", mid, "removed")
	p.end("tel", mid)
	same(t, r.texts("tel"), "removed <app-1")
}

// Many messages that are never finished are bounded in bytes: the gateway is cut off, and nothing of it stays.
func TestOpenMessagesAreBounded(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	big := strings.Repeat("x", 2<<20)
	for i := 0; ; i++ {
		if i > 2*hardBytes/len(big) {
			t.Fatal("never cut off")
		}
		p.ask(obj("op", "send", "chat_id", fmt.Sprint("tel-", i), "content", big+" ▉", "metadata", obj("expect_edits", true)))
		closed := false
		select {
		case <-p.in:
		case <-p.gone:
			closed = true
		case <-time.After(10 * time.Second):
			t.Fatal("neither answered nor cut off")
		}
		if closed {
			break
		}
	}
	if p.code != closeTryLater {
		t.Errorf("closed with %d", p.code)
	}
	r.pass(quietStream + 2*time.Second)
	g := r.a.routes.Load().list[0]
	g.seq.Lock()
	defer g.seq.Unlock()
	if g.reports.openBytes != 0 {
		t.Errorf("%d bytes are still held", g.reports.openBytes)
	}
}

// Whatever a gateway does wrong, however often, the log grows by a few lines a second, and no name it gives fills one.
func TestLogIsBounded(t *testing.T) {
	var log bytes.Buffer
	r := newRig(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Gateways = []Gateway{{ID: "gw", Secret: "s3cret", Devices: []string{"tel"}}, {ID: "b", Secret: "sb", Devices: []string{"*"}}}
	})
	p := r.dial()
	long := strings.Repeat("ä", 100_000)
	const each = 200
	for range 3 {
		for i := range each {
			name := long
			if i%20 > 0 { // enough of them, for each takes the time of a small file
				name = long[:2000]
			}
			p.op(obj("op", name, "chat_id", fmt.Sprint("foreign", i, name), "content", "x"))
			p.raw([]byte("garbage\n"))
			p.send(obj("type", "going_idle"))
			p.expect("going_idle_ack")
			p.send(obj("type", "hello", "platform", "relay"))
			p.expect("descriptor")
		}
		r.pass(logEvery)
	}
	r.h.set(false, errors.New("disk full"))
	for range each {
		p.op(obj("op", "send", "chat_id", "tel", "content", "x"))
	}
	r.stop()
	text := log.String()
	if n := strings.Count(text, "\n"); n > 30 || len(text) > 10_000 {
		t.Errorf("%d lines, %d bytes:\n%.2000s", n, len(text), text)
	}
	if n := strings.Count(text, fmt.Sprint("left_out=", each-1)); n < 4 {
		t.Errorf("what was left out is told %d times:\n%s", n, text)
	}
}
