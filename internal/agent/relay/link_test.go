package relay

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/internal/agent"
)

func obj(kv ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i].(string)] = kv[i+1]
	}
	return m
}

// A gateway that dials while the server is still starting gets in when it has started.
func TestDialBeforeTheAgentRuns(t *testing.T) {
	r := unbegun(t, nil)
	dialled := make(chan error, 1)
	var p *peer
	go func() {
		var err error
		p, _, err = r.dialAs("gw", "s3cret")
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("the dial ended before the agent ran: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	r.begin()
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
	p.hello()
}

func TestAwayUntilHello(t *testing.T) {
	r := newRig(t, nil)
	rc := r.say("tel", 1, "hi")
	r.until("away", func() bool { return rc.is(agent.ErrAway) })
	if s := r.a.Status("tel"); s.Online || s.Detail == "" {
		t.Errorf("status before the first dial: %+v", s)
	}
	p, _, err := r.dialAs("gw", "s3cret")
	if err != nil {
		t.Fatal(err)
	}
	if r.a.Status("tel").Online {
		t.Error("online before hello")
	}
	p.hello()
	r.until("told", func() bool { return r.a.Status("tel").Online })
	s := r.a.Status("tel")
	if !s.Edit || !s.Typing || !s.Prompt || !s.Stop || !s.FilesIn || !s.Files {
		t.Errorf("an unknown version is taken for the newer: %+v", s)
	}
}

func TestSeveralNames(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial("mobile", "telegram")
	r.say("tel", 1, "hi")
	if src := p.event()["source"].(map[string]any); src["platform"] != "mobile" || src["chat_id"] != "tel" || src["chat_type"] != "dm" || src["user_name"] != "Ann" {
		t.Errorf("source %v", src)
	}
}

// doc/hermes/relay.md §7: one event at a time, and nothing while its receipt is missing.
func TestWedge(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	a := r.say("one", 1, "first")
	b := r.say("two", 2, "second")
	frame := p.expect("inbound")
	r.a.Stop("one")
	p.nothing()
	if a.calls()+b.calls() != 0 {
		t.Error("taken before the receipt")
	}
	r.pass(1500 * time.Millisecond)
	st := r.a.State().Gateways[0]
	if !st.Wedged || st.Wedges != 1 || st.Waiting != 2 || !strings.Contains(r.a.Status("one").Detail, "stalled") {
		t.Errorf("state %+v", st)
	}
	// What comes out meanwhile is answered and shown.
	p.reply("one", frame["event"].(map[string]any)["message_id"].(string), "text during the wedge")
	p.ok(obj("op", "typing", "chat_id", "one"))
	r.pass(29 * time.Second)
	p.nothing()
	p.send(obj("type", "inbound_ack", "bufferId", "something else"))
	p.nothing()
	p.send(obj("type", "inbound_ack", "bufferId", frame["bufferId"]))
	if k := p.expect("interrupt_inbound"); k["session_key"] != "agent:main:relay:dm:one" {
		t.Errorf("interrupt %v", k)
	}
	p.event()
	r.until("both taken", func() bool { return a.is(nil) && b.is(nil) })
	if r.a.State().Gateways[0].Wedged {
		t.Error("still stuck")
	}
	if len(r.h.finals("one")) != 1 {
		t.Errorf("finals %v", r.h.finals("one"))
	}
}

// doc/hermes/relay.md §10: after a reconnect what has no receipt is sent again with the
// same ids, what has one is not; what was never written goes back to the hub.
func TestReplay(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	acked := r.say("one", 1, "first")
	p.event()
	r.until("taken", func() bool { return acked.is(nil) })
	written := r.say("two", 2, "second")
	waiting := r.say("three", 3, "third")
	first := p.expect("inbound")
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("x").Online })
	r.until("given back", func() bool { return waiting.is(agent.ErrAway) })
	if written.calls() != 0 {
		t.Error("an event that may have arrived was given back at once")
	}
	p = r.dial()
	again := p.expect("inbound")
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("replay differs:\n%v\n%v", first, again)
	}
	p.send(obj("type", "inbound_ack", "bufferId", again["bufferId"]))
	r.until("taken", func() bool { return written.is(nil) })
	p.nothing()

	// The gateway does not come back: bounded.
	kept := r.say("four", 4, "fourth")
	p.expect("inbound")
	p.conn.CloseNow()
	r.until("gone", func() bool { return !r.a.Status("x").Online })
	r.pass(keepUnacked - time.Second)
	if kept.calls() != 0 {
		t.Error("given back too early")
	}
	r.pass(3 * time.Second)
	if !kept.is(agent.ErrAway) {
		t.Error("not given back")
	}
	p = r.dial()
	p.nothing()
}

// An event that ends every connection is given up in the end.
func TestPoison(t *testing.T) {
	r := newRig(t, nil)
	rc := &receipt{}
	for i := range maxTries {
		p := r.dial()
		if i == 0 {
			r.a.Hand(agent.Input{N: 1, Device: "tel", Text: "boom"}, rc.taken)
		}
		p.expect("inbound")
		p.conn.CloseNow()
		r.until("gone", func() bool { return !r.a.Status("x").Online })
	}
	p := r.dial()
	p.nothing()
	if rc.calls() != 1 || rc.is(nil) || rc.is(agent.ErrAway) {
		t.Errorf("taken %v", rc.got)
	}
}

func TestGoingIdle(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("one", 1, "hi")
	pending := r.say("two", 2, "no receipt")
	frame := p.expect("inbound")
	p.send(obj("type", "going_idle"))
	p.expect("going_idle_ack")
	r.until("ended", func() bool { return len(r.h.dones("one")) == 1 })
	if d := r.h.dones("one")[0]; !d.Interrupted {
		t.Error("a turn cut by the gateway's end is interrupted")
	}
	if r.a.Status("one").Online {
		t.Error("online after going_idle")
	}
	late := r.say("one", 3, "later")
	r.until("away", func() bool { return late.is(agent.ErrAway) })
	p.react("one", mid, "👀", true) // still answered
	p.nothing()
	p.conn.CloseNow()
	p = r.dial()
	if got := p.expect("inbound"); got["bufferId"] != frame["bufferId"] {
		t.Errorf("replay %v", got)
	}
	p.send(obj("type", "inbound_ack", "bufferId", frame["bufferId"]))
	r.until("taken", func() bool { return pending.is(nil) })
}

func TestSameID(t *testing.T) {
	r := newRig(t, nil)
	old := r.dial()
	mid := old.turn("tel", 1, "hi")
	for range 3 {
		p, _, err := r.dialAs("gw", "s3cret")
		if err != nil {
			t.Fatal(err)
		}
		old.send(obj("type", "outbound", "requestId", "late", "action", obj("op", "send", "chat_id", "tel", "content", "from the grave")))
		<-old.gone
		if old.code != closeRestart {
			t.Errorf("the older connection was closed with %d", old.code)
		}
		old = p.hello()
	}
	if !r.a.State().Gateways[0].SameIDSeen {
		t.Error("not noticed")
	}
	old.reply("tel", mid, "answer")
	old.sync()
	for _, s := range r.h.finals("tel") {
		if s.Text == "from the grave" && len(r.h.finals("tel")) > 4 {
			t.Errorf("late frames of replaced connections were taken: %v", r.h.finals("tel"))
		}
	}
	if n := len(r.h.dones("tel")); n != 0 {
		t.Errorf("a reconnect ended the turn")
	}
}

func TestHundredReconnects(t *testing.T) {
	r := newRig(t, nil)
	for i := range 100 {
		p := r.dial()
		mid := p.turn("tel", int64(i+1), "hi")
		p.reply("tel", mid, fmt.Sprint("answer ", i))
		p.end("tel", mid)
		p.conn.CloseNow()
		r.until("gone", func() bool { return !r.a.Status("tel").Online })
	}
	if n, d := len(r.h.finals("tel")), len(r.h.dones("tel")); n != 100 || d != 100 {
		t.Errorf("%d finals, %d turns ended", n, d)
	}
	r.a.mu.Lock()
	links := len(r.a.open)
	r.a.mu.Unlock()
	if links != 0 {
		t.Errorf("%d connections are kept", links)
	}
}

func TestTwoGateways(t *testing.T) {
	users := map[string]string{"bob-2": "bob"}
	r := newRig(t, func(o *Options) {
		o.Known = map[string]Version{"a": Newer, "b:x": Newer}
		o.Gateways = []Gateway{
			{ID: "a", Secret: "sa", Devices: []string{"ann-1", "user:bob"}},
			{ID: "b:x", Secret: "sb"},
		}
		o.UserOf = func(d string) string { return users[d] }
	})
	a, _, err := r.dialAs("a", "sa")
	if err != nil {
		t.Fatal(err)
	}
	a.hello()
	b, _, err := r.dialAs("b:x", "sb")
	if err != nil {
		t.Fatal(err)
	}
	b.hello()
	for d, p := range map[string]*peer{"ann-1": a, "bob-2": a, "carl": b} {
		r.say(d, 1, "hi")
		if got := p.event()["source"].(map[string]any)["chat_id"]; got != d {
			t.Errorf("%v came, want %s", got, d)
		}
	}
	// Nothing of one gateway's devices can be reached by another.
	for _, op := range []string{"send", "prompt", "send_media", "draft", "edit", "typing", "react"} {
		res := b.op(obj("op", op, "chat_id", "ann-1", "content", "x", "message_id", "m1-x", "emoji", "✅",
			"options", []any{obj("id", "deny", "label", "no")}, "source_url", "http://example.org/x.png"))
		if res["success"] == true {
			t.Errorf("%s of another gateway: %v", op, res)
		}
	}
	r.settle()
	if got := r.h.all("ann-1"); len(got) != 0 {
		t.Errorf("came through: %v", got)
	}
}

func TestSetGateways(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Gateways = []Gateway{{ID: "gw", Secret: "s3cret"}, {ID: "gone", Secret: "x", Devices: []string{"d"}}, {ID: "new", Secret: "old", Devices: []string{"e"}}}
	})
	keep := r.dial()
	gone, _, _ := r.dialAs("gone", "x")
	gone.hello()
	changed, _, _ := r.dialAs("new", "old")
	changed.hello()
	mid := gone.turn("d", 1, "hi")
	_ = mid
	r.a.SetGateways([]Gateway{{ID: "gw", Secret: "s3cret"}, {ID: "new", Secret: "new", Devices: []string{"e"}}})
	<-gone.gone
	if gone.code != closeRevoked {
		t.Errorf("removed: closed with %d", gone.code)
	}
	<-changed.gone
	if changed.code != closeRestart {
		t.Errorf("another secret: closed with %d", changed.code)
	}
	r.until("ended", func() bool { return len(r.h.dones("d")) == 1 })
	keep.nothing()
	if _, resp, err := r.dialAs("gone", "x"); err == nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a removed gateway: %v", err)
	}
	r.say("d", 2, "to the default now")
	keep.event()
}

func TestShutdown(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	running := p.turn("one", 1, "hi")
	_ = running
	written := r.say("two", 2, "no receipt")
	queued := r.say("three", 3, "behind")
	p.expect("inbound")
	r.stop()
	<-p.gone
	if p.code != closeGoingAway {
		t.Errorf("closed with %d", p.code)
	}
	if !written.is(agent.ErrAway) || !queued.is(agent.ErrAway) {
		t.Errorf("taken %v %v", written.got, queued.got)
	}
	if len(r.h.dones("one")) != 0 {
		t.Error("a turn that goes on in the gateway was ended")
	}
	if rc := r.say("one", 4, "late"); !rc.is(agent.ErrAway) {
		t.Error("taken after the end")
	}
}

func TestFraming(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	line := func(id, text string) string {
		return `{"type":"outbound","requestId":"` + id + `","action":{"op":"send","chat_id":"tel","content":"` + text + `","reply_to":null,"metadata":{"user_id":"u"}}}`
	}
	p.raw([]byte(line("1", "one") + "\n" + line("2", "two") + "\n"))   // two lines
	p.raw([]byte(line("3", "three")))                                  // without its end
	p.raw([]byte("\n"))                                                // and its end
	p.raw([]byte(line("4", "fo")[:90]))                                // split
	p.raw([]byte(line("4", "fo")[90:] + "\n" + line("5", "five")[:7])) // split and the next one begun
	p.raw([]byte(line("5", "five")[7:] + "\n"))
	if err := p.conn.Write(context.Background(), websocket.MessageBinary, []byte(line("6", "six")+"\n")); err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 3<<20)
	p.raw([]byte(line("7", big) + "\n"))
	for range 7 {
		if res := p.expect("outbound_result"); res["result"].(map[string]any)["success"] != true {
			t.Errorf("%v", res)
		}
	}
	says := r.h.finals("tel")
	if len(says) != 7 || says[6].Text != big {
		t.Fatalf("%d messages", len(says))
	}
	for i, want := range []string{"one", "two", "three", "fo", "five", "six"} {
		if says[i].Text != want || says[i].ReplyTo != "" {
			t.Errorf("message %d: %+v", i, says[i])
		}
	}
}

func TestHostileFrames(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	mid := p.turn("tel", 1, "hi")
	for _, s := range []string{
		"null", "[]", "7", `"x"`, "{}", `{"type":null}`, `{"type":["outbound"]}`, "{", "\x00\xff", "true", `{"type":"outbound"`,
		strings.Repeat("[", 100_000), `{"type":"outbound","action":` + strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000) + "}",
		`{"type":"outbound","action":{"op":"send","chat_id":"tel"}}`, `{"type":"inbound_ack"}`, `{"type":"inbound_ack","bufferId":{"a":1}}`,
		`{"type":"outbound_result","requestId":"r1"}`, `{"type":"descriptor"}`, `{"type":"interrupt","session_key":1}`, `{"type":"nonsense"}`,
		`{"type":"hello","platform":{"x":1}}`,
	} {
		p.raw([]byte(s + "\n"))
	}
	for _, act := range []string{
		`null`, `[]`, `7`, `{}`, `{"op":"send"}`, `{"op":["send"],"chat_id":"tel"}`, `{"op":"send","chat_id":{"a":1},"content":"x"}`,
		`{"op":"fly","chat_id":"tel"}`, `{"op":"follow_up","chat_id":"tel","content":"x"}`, `{"op":"prompt","chat_id":"tel","options":null}`,
		`{"op":"prompt","chat_id":"tel","options":[{"id":null}]}`, `{"op":"prompt","chat_id":"tel","options":"x"}`,
		`{"op":"send_media","chat_id":"tel","source_url":"file:///etc/passwd"}`, `{"op":"send_media","chat_id":"tel","source_url":"::"}`,
		`{"op":"send_media","chat_id":"tel","source_url":"http://x/relay/media/../../etc"}`, `{"op":"send","chat_id":"tel","content":[1],"metadata":7}`,
		`{"op":"delete","chat_id":"tel","message_id":"x"}`, `{"op":"thread_create","chat_id":"tel"}`,
	} {
		p.n++
		id := fmt.Sprint("r", p.n)
		p.raw([]byte(`{"type":"outbound","requestId":"` + id + `","action":` + act + "}\n"))
		res := p.expect("outbound_result")
		if res["requestId"] != id || res["result"].(map[string]any)["success"] != false {
			t.Errorf("%s: %v", act, res)
		}
	}
	// Odd, but good enough.
	for _, act := range []string{
		`{"op":"react","chat_id":"tel","message_id":7,"emoji":null,"remove":null}`, `{"op":"typing","chat_id":"tel","metadata":null}`,
		`{"op":"draft","chat_id":"tel","draft_id":"x","content":null}`, `{"op":"edit","chat_id":"tel","message_id":"never","content":""}`,
		`{"op":"send","chat_id":"tel","content":"","metadata":{"notify":true}}`, `{"op":"send","op":"typing","chat_id":"tel"}`,
	} {
		p.n++
		p.raw([]byte(fmt.Sprintf(`{"type":"outbound","requestId":"r%d","action":%s}`+"\n", p.n, act)))
		if res := p.expect("outbound_result"); res["result"].(map[string]any)["success"] != true {
			t.Errorf("%s: %v", act, res)
		}
	}
	p.reply("tel", mid, "still here")
	p.end("tel", mid)
	if r.a.State().Gateways[0].BadLines == 0 {
		t.Error("bad lines are not counted")
	}
	if says := r.h.finals("tel"); len(says) != 1 || says[0].Text != "still here" || says[0].ReplyTo != "app-1" {
		t.Errorf("finals %+v", says)
	}
	if len(r.h.asks("tel")) != 0 {
		t.Error("a prompt without options was shown")
	}
}

func TestLineTooLong(t *testing.T) {
	for _, split := range []bool{false, true} {
		r := newRig(t, nil)
		p := r.dial()
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		if !split {
			chunk = bytes.Repeat([]byte("x"), maxLine+1)
		}
		go func() {
			for range 12 {
				if p.conn.Write(context.Background(), websocket.MessageText, chunk) != nil {
					return
				}
			}
		}()
		<-p.gone
		if p.code != closeTooBig {
			t.Errorf("split %v: closed with %d", split, p.code)
		}
	}
}

// A hub that cannot keep up: interim ops wait, nothing grows without bound.
func TestFlood(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	p.turn("tel", 1, "hi")
	r.h.set(true, nil)
	for i := range softPending + 10 {
		p.ask(obj("op", "send", "chat_id", "tel", "content", fmt.Sprint("message ", i)))
	}
	p.ask(obj("op", "typing", "chat_id", "tel"))
	p.sync2()
	if n := len(p.in); n != 0 {
		t.Errorf("%d answers before anything was stored", n)
	}
	// Bounded: every op is answered within 20 s.
	r.move(answerWithin + time.Second)
	r.until("answers", func() bool { return len(p.in) == softPending+11 })
	for range softPending + 11 {
		p.next()
	}
	go func() {
		for i := range hardPending + 10 {
			b := []byte(fmt.Sprintf(`{"type":"outbound","requestId":"f%d","action":{"op":"send","chat_id":"tel","content":"m%d"}}`+"\n", i, i))
			if p.conn.Write(context.Background(), websocket.MessageText, b) != nil {
				return
			}
		}
	}()
	<-p.gone
	if p.code != closeTryLater {
		t.Errorf("closed with %d", p.code)
	}
	r.h.release()
	r.until("stored", func() bool { return r.pendingStores() == 0 })
	p = r.dial()
	p.nothing()
}

// sync2 waits until the frames sent so far were read, whatever is stored.
func (p *peer) sync2() {
	p.r.t.Helper()
	p.ask(obj("op", "get_chat_info", "chat_id", "sync"))
	p.expect("outbound_result")
}

func (r *rig) pendingStores() int {
	g := r.a.serves("tel")
	g.seq.Lock()
	defer g.seq.Unlock()
	return g.reports.pending
}

func TestStoreFailure(t *testing.T) {
	r := newRig(t, nil)
	p := r.dial()
	r.h.set(false, fmt.Errorf("disk full"))
	if res := p.op(obj("op", "send", "chat_id", "tel", "content", "x")); res["success"] == true || strings.Contains(fmt.Sprint(res), "disk") {
		t.Errorf("%v", res)
	}
	r.h.set(false, nil)
	// Cron to a device that is not there is never OK for nothing.
	if res := p.op(obj("op", "send", "chat_id", "unknown-1", "content", "x", "metadata", obj("job_id", "j"))); res["success"] == true {
		t.Errorf("%v", res)
	}
	r.settle()
	g := r.a.serves("tel")
	g.seq.Lock()
	defer g.seq.Unlock()
	if g.conversations.all["unknown-1"] != nil {
		t.Error("an unknown device is kept")
	}
}
