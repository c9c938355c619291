package relay

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
)

func text(d string, n int64, s string) agent.Input { return agent.Input{N: n, Device: d, Text: s} }

// The version is learnt from the first turn and remembered.
func TestVersion(t *testing.T) {
	learnt := map[string]Version{}
	r := newRig(t, func(o *Options) {
		o.Known, o.Remember = nil, func(id string, v Version) { learnt[id] = v }
	})
	p := r.dial()
	rc := r.say("tel", 1, "hi")
	p.event()
	r.until("taken", func() bool { return rc.is(nil) })
	p.ok(obj("op", "send", "chat_id", "tel", "content", "📬 No home channel is set"))
	r.settle()
	if s := r.a.Status("tel"); s.Edit || s.Typing || s.Prompt || s.Files || !s.Stop || !s.FilesIn {
		t.Errorf("older on this machine: %+v", s)
	}
	if learnt["gw"] != Older {
		t.Errorf("remembered %v", learnt)
	}
	// A notice of a gateway that starts may come first: the next op tells.
	p.react("tel", "m1-x", "👀", false)
	r.settle()
	if s := r.a.Status("tel"); !s.Edit || learnt["gw"] != Early {
		t.Errorf("early: %+v %v", s, learnt)
	}
	p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 1, "content", "do", "metadata", obj("reply_to_message_id", "m1-x")))
	r.settle()
	if s := r.a.Status("tel"); !s.Edit || learnt["gw"] != Newer {
		t.Errorf("newer: %+v %v", s, learnt)
	}
	// After that a notice on a new connection does not make it older again, a
	// whole turn without other ops does.
	p.reply("tel", "m1-x", "done")
	p.end("tel", "m1-x")
	p.conn.CloseNow()
	p = r.dial()
	r.say("tel", 2, "hi")
	p.event()
	p.ok(obj("op", "send", "chat_id", "tel", "content", "📬 No home channel is set"))
	r.settle()
	if learnt["gw"] != Newer {
		t.Error("one notice made it older")
	}
	p.ok(obj("op", "send", "chat_id", "tel", "content", "answer", "reply_to", "m2-x", "metadata", obj("notify", true)))
	r.settle()
	if learnt["gw"] != Older {
		t.Error("a downgrade is not seen")
	}
}

func TestOlderFilesAndAdmission(t *testing.T) {
	no := false
	r := newRig(t, func(o *Options) {
		o.Known = map[string]Version{"gw": Older}
		o.Gateways[0].Local = &no
	})
	p := r.dial()
	if r.a.Status("tel").FilesIn {
		t.Error("files to an older gateway on another machine")
	}
	rc := &receipt{}
	f := &agent.File{Kind: "image", Mime: "image/png", Name: "a.png", Hash: r.files.put(t, "x")}
	r.a.Hand(agent.Input{N: 1, Device: "tel", Kind: agent.Media, File: f}, rc.taken)
	r.until("refused", func() bool { return rc.calls() == 1 })
	if rc.is(nil) || rc.is(agent.ErrAway) {
		t.Errorf("taken %v", rc.got)
	}
	// First turn: the notice is no question.
	r.say("tel", 2, "hi")
	p.event()
	p.ok(obj("op", "send", "chat_id", "tel", "content", "📬 No home channel is set"))
	r.settle()
	if r.a.Admits(text("tel", 3, "hello?")) {
		t.Error("a notice was taken for a question")
	}
	r.pass(3 * time.Second)
	p.ok(obj("op", "send", "chat_id", "tel", "content", "⚠️ approval"))
	r.settle()
	for s, want := range map[string]bool{"/approve session": true, "/deny": true, "/status": false, "/new": false, "yes": true, "/stop": true, " /STOP ": true, "/stopx": false} {
		if r.a.Admits(text("tel", 3, s)) != want {
			t.Errorf("admits %q: %v", s, !want)
		}
	}
	ans := r.say("tel", 3, "/approve")
	frame := p.expect("inbound")
	// Deaf for 30 s: the texts come out all the same.
	p.ok(obj("op", "send", "chat_id", "tel", "content", "✅ approved", "reply_to", "m3-x", "metadata", obj("notify", true)))
	p.ok(obj("op", "send", "chat_id", "tel", "content", "result", "reply_to", "m2-x", "metadata", obj("notify", true)))
	r.pass(time.Second)
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 2 || d[0].Interrupted {
		t.Errorf("dones %v", d)
	}
	p.send(obj("type", "inbound_ack", "bufferId", frame["bufferId"]))
	r.until("done", func() bool { return len(r.h.dones("tel")) == 2 && ans.is(nil) })
}

// An open question of a newer gateway is plain text; typing pauses meanwhile.
func TestNewerQuestion(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	p.ok(obj("op", "send", "chat_id", "tel", "content", "tool progress"))
	for range 4 {
		r.pass(2 * time.Second)
		p.ok(obj("op", "typing", "chat_id", "tel"))
	}
	r.settle()
	if r.a.Admits(text("tel", 2, "yes")) {
		t.Error("admitted while it works")
	}
	p.ok(obj("op", "send", "chat_id", "tel", "content", "What is your name?"))
	r.pass(2 * time.Second)
	if r.a.Admits(text("tel", 2, "Ann")) {
		t.Error("admitted too early")
	}
	changed := func() int { r.h.mu.Lock(); defer r.h.mu.Unlock(); return r.h.changed }
	before := changed()
	r.pass(4 * time.Second)
	if !r.a.Admits(text("tel", 2, "Ann")) || r.a.Admits(text("tel", 2, "/status")) {
		t.Error("an answer is not admitted, or a command is")
	}
	if changed() == before {
		t.Error("the hub was not told")
	}
	rc := r.say("tel", 2, "Ann")
	p.event()
	r.until("done", func() bool { return rc.is(nil) && len(r.h.dones("tel")) == 1 && r.h.dones("tel")[0].N == 2 })
	if r.a.Admits(text("tel", 3, "more")) {
		t.Error("a second one is admitted")
	}
}

func TestTurnEnds(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	done := func(n int64) *agent.Done {
		for _, d := range r.h.dones("tel") {
			if d.N == n {
				return &d
			}
		}
		return nil
	}
	// Queued by a gateway that starts: the first marks are not the end.
	mid := p.turn("tel", 1, "hi")
	p.react("tel", mid, "👀", true)
	p.react("tel", mid, "✅", false)
	r.pass(40 * time.Second)
	if done(1) != nil {
		t.Fatal("ended by the marks of queueing")
	}
	p.react("tel", mid, "👀", false)
	p.reply("tel", mid, "answer")
	p.end("tel", mid)
	if d := done(1); d == nil || d.Interrupted {
		t.Fatalf("not ended: %v", d)
	}
	// A turn that says nothing ends all the same, quickly when the gateway is up.
	r.pass(3 * time.Minute)
	mid = p.turn("tel", 2, "hi")
	p.end("tel", mid)
	r.pass(3 * time.Second)
	if done(2) == nil {
		t.Fatal("an empty turn did not end")
	}
	// Another platform name has other marks; the eyes alone end it, too.
	mid = p.turn("tel", 3, "hi")
	p.reply("tel", mid, "answer")
	p.react("tel", mid, "👀", true)
	p.react("tel", mid, "👎", false)
	r.pass(time.Second)
	if done(3) == nil {
		t.Fatal("not ended by 👎")
	}
	// Marks of another message end nothing.
	mid = p.turn("tel", 4, "hi")
	p.react("tel", "m3-x", "👀", true)
	p.react("tel", "m3-x", "✅", false)
	r.pass(10 * time.Second)
	if done(4) != nil {
		t.Fatal("ended by the marks of another")
	}
	// The lease: typing renews it, silence ends it.
	for range 8 {
		r.pass(time.Minute)
		p.ok(obj("op", "typing", "chat_id", "tel"))
	}
	if done(4) != nil {
		t.Fatal("ended while it types")
	}
	p.ok(obj("op", "draft", "chat_id", "tel", "draft_id", 5, "content", "half a", "metadata", obj("reply_to_message_id", mid)))
	r.pass(idleNewer + time.Second)
	if d := done(4); d == nil || !d.Interrupted {
		t.Fatal("the lease did not end it")
	}
	if says := r.h.finals("tel"); says[len(says)-1].Text != "half a" || !says[len(says)-1].Interrupted {
		t.Errorf("the open message: %+v", says[len(says)-1])
	}
	// A gateway that dropped the input as a repeat gives its receipt, and nothing else is ever heard of it.
	rc := r.say("tel", 40, "had it before")
	p.event()
	r.until("taken", func() bool { return rc.is(nil) })
	r.pass(startupGrace)
	if done(40) != nil {
		t.Fatal("ended while the gateway may still be starting")
	}
	r.pass(idleUnseen - startupGrace + time.Second)
	if d := done(40); d == nil || !d.Interrupted {
		t.Fatal("nothing was heard, and it goes on")
	}
	// Marks that never come after a whole answer.
	mid = p.turn("tel", 5, "hi")
	p.reply("tel", mid, "the answer")
	r.pass(quietNotify + time.Second)
	if d := done(5); d == nil || d.Interrupted {
		t.Fatal("a whole answer without marks")
	}
	// While the person is asked there is no lease.
	mid = p.turn("tel", 6, "hi")
	p.ok(obj("op", "prompt", "chat_id", "tel", "content", "may I?", "prompt_kind", "approval", "prompt_id", "aa.1", "options", []any{obj("id", "once", "label", "y"), obj("id", "deny", "label", "n")}))
	r.pass(30 * time.Minute)
	if done(6) != nil {
		t.Fatal("ended while a card is open")
	}
	p.reply("tel", mid, "x")
	// The gateway goes and does not come back.
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	r.a.Answer(r.h.asks("tel")[0], agent.Answer{OptionID: "once"}, func(err error) {
		if !errors.Is(err, agent.ErrAway) {
			t.Error(err)
		}
	})
	p = r.dial()
	p.end("tel", mid)
	if done(6) == nil {
		t.Fatal("not ended after a reconnect")
	}
}

func TestAwayEndsTurn(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	r.pass(idleLost - time.Second)
	if len(r.h.dones("tel")) != 0 {
		t.Error("ended too early")
	}
	r.pass(5 * time.Second)
	if d := r.h.dones("tel"); len(d) != 1 || !d[0].Interrupted {
		t.Errorf("%v", d)
	}
}

func TestStop(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial("mobile")
	// Without a turn it is a command like any other.
	r.say("tel", 1, "/stop")
	ev := p.event()
	if ev["text"] != "/stop" {
		t.Errorf("%v", ev)
	}
	mid := ev["message_id"].(string)
	p.react("tel", mid, "👀", false)
	p.reply("tel", mid, "nothing to stop")
	p.end("tel", mid)
	// In a turn it interrupts. The name is not known to be known: both keys.
	mid = p.turn("tel", 2, "slow")
	rc := r.say("tel", 3, "/stop")
	keys := p.expect("interrupt_inbound")["session_key"].(string) + " " + p.expect("interrupt_inbound")["session_key"].(string)
	if keys != "agent:main:relay:dm:tel agent:main:mobile:dm:tel" {
		t.Errorf("keys %s", keys)
	}
	r.until("done", func() bool { return rc.is(nil) && len(r.h.dones("tel")) == 2 })
	r.a.Stop("tel")
	p.reply("tel", mid, "half")
	p.end("tel", mid)
	if says := r.h.finals("tel"); !says[len(says)-1].Interrupted {
		t.Error("what a stopped turn said is not marked")
	}
	if d := r.h.dones("tel"); len(d) != 3 || d[2].N != 2 || !d[2].Interrupted {
		t.Errorf("%v", d)
	}
	// Frames with the platform prove the name.
	p.turn("tel", 4, "slow")
	p.send(obj("type", "outbound", "requestId", "k", "platform", "mobile", "action", obj("op", "typing", "chat_id", "tel")))
	p.expect("outbound_result")
	r.a.Stop("tel")
	if k := p.expect("interrupt_inbound")["session_key"]; k != "agent:main:mobile:dm:tel" {
		t.Errorf("key %v", k)
	}
	// No sign of the end: it ends by itself.
	r.pass(stopGrace + time.Second)
	if d := r.h.dones("tel"); len(d) != 4 || !d[3].Interrupted {
		t.Errorf("%v", d)
	}
	p.nothing()
	r.a.Stop("nobody")
}

func TestHanded(t *testing.T) {
	r := newRig(t, nil)
	rc := &receipt{}
	r.a.Hand(agent.Input{N: 7, Device: "tel", ID: "app-7", Text: "from before", Handed: true, Texts: 1}, rc.taken)
	r.until("taken", func() bool { return rc.is(nil) })
	p := r.dial()
	p.nothing() // not sent again
	p.ok(obj("op", "typing", "chat_id", "tel"))
	r.pass(10 * time.Second)
	if len(r.h.dones("tel")) != 0 {
		t.Error("ended although it types")
	}
	// The rest of what was streamed, by an id of the earlier life.
	old := agent.NewID()
	p.ok(obj("op", "edit", "chat_id", "tel", "message_id", old, "content", "The whole ▉"))
	p.ok(obj("op", "edit", "chat_id", "tel", "message_id", old, "content", "The whole text."))
	p.ok(obj("op", "edit", "chat_id", "tel", "message_id", old, "content", "The whole text."))
	p.end("tel", "m7-x")
	says := r.h.finals("tel")
	if len(says) != 1 || says[0].Text != "The whole text." || says[0].ReplyTo != "app-7" || says[0].N != 7 || says[0].ID == old {
		t.Errorf("%+v", says)
	}
	if d := r.h.dones("tel"); len(d) != 1 || d[0].Interrupted {
		t.Errorf("%v", d)
	}
	for _, c := range []struct {
		n           int64
		texts       int
		interrupted bool
	}{{8, 1, false}, {9, 0, true}} {
		r.a.Hand(agent.Input{N: c.n, Device: "tel", Handed: true, Texts: c.texts}, func(error) {})
		r.pass(idleAdopted + time.Second)
		d := r.h.dones("tel")
		if last := d[len(d)-1]; last.N != c.n || last.Interrupted != c.interrupted {
			t.Errorf("%+v: %v", c, last)
		}
	}
}

// The server was killed before it could note that the gateway has an input, and hands it over again while the gateway, which
// was done with it and drops the repeat, gives its reply and its marks.
func TestMarkedWhileItIsHandedAgain(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.end("tel", p.turn("tel", 1, "so that the version is known"))
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	p = r.dial()
	rc := r.say("tel", 2, "had it before")
	mid := p.event()["message_id"].(string)
	r.until("taken", func() bool { return rc.is(nil) })
	p.ok(obj("op", "send", "chat_id", "tel", "content", "♻️ Recovered reply:\n\nthe answer", "metadata", obj("user_id", "tel")))
	p.end("tel", mid)
	d := r.h.dones("tel")
	if last := d[len(d)-1]; last.N != 2 || last.Interrupted {
		t.Errorf("%v", d)
	}
}

// A turn whose marks were lost ends although the link is lost again and again before its silence was long enough.
func TestSilenceOverLostLinks(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	for range 4 {
		p.conn.CloseNow()
		r.until("gone", func() bool { return !r.a.Status("tel").Online })
		r.pass(time.Minute) // in which it cannot be heard
		p = r.dial()
		if len(r.h.dones("tel")) > 0 {
			t.Fatal("ended by the time in which it could not be heard")
		}
		r.pass(idleUntyped / 3)
	}
	r.until("ended", func() bool { return len(r.h.dones("tel")) == 1 })
}

// The notes that 7 ended and 8 was handed over are missing, for the disk was full. What the gateway marks as done is not
// sent to it again.
func TestMarkedBeforeItIsHanded(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	r.a.Hand(agent.Input{N: 7, Device: "tel", ID: "app-7", Text: "ended before", Handed: true, Texts: 1}, func(error) {})
	p.end("tel", "m8-x")
	r.pass(idleUntyped + time.Second)
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 7 {
		t.Fatalf("%v", d)
	}
	rc := r.say("tel", 8, "done before")
	r.until("taken", func() bool { return rc.is(nil) })
	p.nothing()
	r.pass(time.Second)
	if d := r.h.dones("tel"); len(d) != 2 || d[1].N != 8 || d[1].Interrupted {
		t.Errorf("%v", d)
	}
	r.say("tel", 9, "new")
	p.event()
}

// The server was killed before it could note that the gateway has an input, and the gateway was done with it before the
// server had read what is left to do: the first that is heard of the conversation are the marks.
func TestMarkedBeforeAnythingIsHanded(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.ok(obj("op", "react", "chat_id", "tel", "message_id", "m7-x", "emoji", "👀", "remove", true))
	p.ok(obj("op", "react", "chat_id", "tel", "message_id", "m7-x", "emoji", "✅", "remove", false))
	rc := r.say("tel", 7, "done before")
	r.until("taken", func() bool { return rc.is(nil) })
	p.nothing()
	r.pass(time.Second)
	if d := r.h.dones("tel"); len(d) != 1 || d[0].N != 7 || d[0].Interrupted {
		t.Errorf("%v", d)
	}
	r.say("tel", 8, "new")
	p.event()
}

func TestTooLong(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	rc := r.say("tel", 1, strings.Repeat("é", 700_000))
	r.until("refused", func() bool { return rc.calls() == 1 })
	if rc.is(nil) || rc.is(agent.ErrAway) {
		t.Errorf("%v", rc.got)
	}
	p.nothing()
	r.say("tel", 2, "short")
	p.event()
}

func TestQuote(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	own := agent.NewID()
	r.a.Hand(agent.Input{N: 1, Device: "tel", UserName: "Ann", Text: "why?", ReplyTo: own, Quote: "because"}, func(error) {})
	ev := p.event()
	q := ev["reply_to"].(map[string]any)
	if ev["reply_to_message_id"] != own || q["text"] != "because" || q["is_own"] != true || q["author"] != "Hermes" {
		t.Errorf("%v", ev)
	}
}

// The gateway resumed a turn by itself: an event waits until it is done.
func TestStrayTurn(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	typing := obj("op", "typing", "chat_id", "tel")
	mid := p.turn("tel", 1, "hi")
	p.reply("tel", mid, "answer")
	p.end("tel", mid)
	r.pass(time.Minute)
	p.ok(typing)
	rc := r.say("tel", 2, "hello?")
	for range 5 {
		r.pass(2 * time.Second)
		p.ok(typing)
	}
	p.nothing()
	r.pass(strayTyping + time.Second)
	if ev := p.event(); ev["text"] != "hello?" {
		t.Errorf("%v", ev)
	}
	r.until("taken", func() bool { return rc.is(nil) })
	p.reply("tel", "m2-x", "answer 2")
	p.end("tel", "m2-x")
	// Stop reaches it, with and without a message that waits.
	r.pass(time.Minute)
	p.ok(typing)
	r.a.Stop("tel")
	p.expect("interrupt_inbound")
	rc = r.say("tel", 3, "hello?")
	r.a.Stop("tel")
	p.expect("interrupt_inbound")
	r.until("taken", func() bool { return rc.is(nil) })
	r.pass(stopGrace + time.Second)
	p.nothing()
	if d := r.h.dones("tel"); len(d) != 3 || d[2].N != 3 || !d[2].Interrupted {
		t.Errorf("%v", d)
	}
	// The connection is lost while one waits.
	r.pass(time.Minute)
	p.ok(typing)
	rc = r.say("tel", 4, "hello?")
	p.conn.CloseNow()
	r.until("back", func() bool { return rc.is(agent.ErrAway) })
}

// A stop while the gateway is away reaches it when it is back.
func TestStopWhileAway(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("tel").Online })
	r.a.Stop("tel")
	r.pass(30 * time.Second)
	if len(r.h.dones("tel")) != 0 {
		t.Error("ended while the gateway goes on")
	}
	p = r.dial()
	p.expect("interrupt_inbound")
	p.reply("tel", mid, "half")
	p.end("tel", mid)
	same(t, r.texts("tel"), "half ! <app-1")
}

// The clock does not spin while something runs.
func TestClockRests(t *testing.T) {
	var looks atomic.Int64
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	r := newRig(t, func(o *Options) {
		o.Now = func() time.Time { looks.Add(1); return c.now() }
	})
	r.clock = c
	p := r.dial()
	p.turn("tel", 1, "hi")
	r.settle()
	from, began := looks.Load(), time.Now()
	r.until("looked", func() bool { return looks.Load() > from+300 })
	if d := time.Since(began); d < 20*r.a.tick/2 {
		t.Errorf("300 looks at the time in %s", d)
	}
}
