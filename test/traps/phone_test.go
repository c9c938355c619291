package traps

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// What is no frame of ours is answered with an error, and the connection goes on; nothing of it is done.
func TestShapes(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	c, _ := open(t, s, "tel")
	for _, line := range []string{"null", "[]", "7", `"x"`, "{}", `{"t":null}`, `{"t":["text"]}`, "", " ", "{", "\ufeff{}", `{"t":"text"}{"t":"text"}`,
		`{"t":"text","id":{"a":1},"text":"not run"}`, `{"t":"text","id":7,"text":"not run"}`, `{"t":"text","id":["x"],"text":"not run"}`,
		`{"t":"text","id":"x","text":null}`, `{"t":"text","id":"x","text":"a","text":"not run"}`, strings.Repeat("[", 100_000), `{"t":"prompt_answer"}`, `{"t":"ready"}`} {
		c.raw(websocket.MessageText, []byte(line))
		if e := find[*frame.Error](c); e.Code != frame.BadFrame && e.Code != frame.Unsupported {
			t.Errorf("%.40q gets %s", line, e.Code)
		}
	}
	c.raw(websocket.MessageBinary, []byte(`{"t":"text","id":"x","text":"not run"}`))
	if e := find[*frame.Error](c); e.Code != frame.BadFrame {
		t.Errorf("a binary message gets %s", e.Code)
	}
	nothing(t, g)
	c.send(&frame.Text{ID: "x", Text: "run"})
	if a := find[*frame.Accepted](c); a.Duplicate {
		t.Error("the id of a frame that was refused is used up")
	}
	take(t, g, "run")
}

// A frame over the limit that ready announces, again and again: refused each time with a code that says so, nothing of it
// is kept, and the same phone is served in between.
func TestOversizeFrame(t *testing.T) {
	t.Parallel()
	s := start(t)
	hello(t, config(s, ""))
	before := s.Memory(t)
	for range 5 {
		c, ready := open(t, s, "tel")
		limit := int(ready.Capabilities.MaxFrameBytes)
		if limit != frame.MaxFrame {
			t.Fatalf("the limit is given as %d", limit)
		}
		line := fmt.Sprintf(`{"t":"text","id":"big","text":"%s"}`, strings.Repeat("x", limit))
		_ = c.ws.Write(soon(t), websocket.MessageText, []byte(line[:limit+1])) // it may be cut off in the middle
		if e := find[*frame.Error](c); e.Code != frame.TooBig {
			t.Errorf("it gets %s", e.Code)
		}
		if code := c.closed(); code != int(frame.CloseTooBig) {
			t.Errorf("closed with %d", code)
		}
		c.close()
	}
	c, _ := open(t, s, "tel")
	c.send(&frame.Text{ID: "m1", Text: "short"})
	find[*frame.Accepted](c)
	settled(t, s, before+64<<20)
}

// The same message id at once, after the receipt was lost, with another body, and after the server was killed: one turn,
// one event for the gateway, and a receipt each time.
func TestIDsAfterRestart(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	c, _ := open(t, s, "tel")
	for range 3 {
		c.send(&frame.Text{ID: "m1", Text: "once"})
	}
	for i := range 3 {
		if a := find[*frame.Accepted](c); a.ID != "m1" || a.Duplicate != (i > 0) {
			t.Errorf("receipt %d: %+v", i, a)
		}
	}
	e := take(t, g, "once")
	c.send(&frame.Text{ID: "m2", Text: "cut"})
	c.close() // before the receipt
	ok(t, g.Turn(soon(t), e, "answer 1"))
	until(t, "the second message", func() bool { return g.Pending("inbound") == 1 })
	e = take(t, g, "cut")
	_, err := g.Must(soon(t), map[string]any{"op": "send", "chat_id": "tel", "content": "a notice"}) // stored after the receipt
	ok(t, err)
	g.Close()
	s.Kill()
	s.Start()
	g = hello(t, config(s, ""))
	c, _ = open(t, s, "tel")
	for id, text := range map[string]string{"m1": "once", "m2": "another body"} {
		c.send(&frame.Text{ID: id, Text: text})
		if a := find[*frame.Accepted](c); a.ID != id || !a.Duplicate {
			t.Errorf("after the restart: %+v", a)
		}
	}
	ok(t, g.Reply(soon(t), e, "answer 2"))
	ok(t, g.End(soon(t), e))
	nothing(t, g) // no event a second time, whatever was sent again
	c.send(&frame.Text{ID: "m3", Text: "new"})
	next := take(t, g, "new")
	if next.MessageID == e.MessageID {
		t.Error("a new message has the id of an older one")
	}
}

// Fifty messages are accepted while the gateway is away; the server is restarted ten times, half of them by force. Then
// they come in order, each once.
func TestQueuedOverRestarts(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := e2e.NewPhone(t, s, "tel")
	const many, restarts = 50, 10
	for i := range many {
		p.Submit(fmt.Sprintf("echo %d x", i))
		if i%(many/restarts) == 0 {
			if i%2 == 0 {
				s.Kill()
			} else {
				s.Stop()
			}
			s.Start()
		}
	}
	for _, out := range p.Pending() {
		p.Receipt(out)
	}
	g := scripted(t, config(s, ""))
	last := fmt.Sprintf("reply %d x", many-1)
	p.Final(0, "the last answer", func(m device.Message) bool { return m.Text == last })
	inputs := g.Inputs()
	for i, in := range inputs {
		if in.Text != fmt.Sprintf("echo %d x", i) || in.Acted != 1 {
			t.Errorf("input %d is %q, worked on %d times", i, in.Text, in.Acted)
		}
	}
	if got := finals(p, 0); len(got) != many || len(inputs) != many || len(slices.Compact(got)) != many {
		t.Errorf("%d answers, %d inputs, want %d", len(got), len(inputs), many)
	}
}

// The answer for a phone that is away is taken from the gateway and kept: an error would make it send again, or give up.
// A scheduled message likewise; to a device that there is not it is refused.
func TestPhoneIsAway(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Say("hello")
	e := take(t, g, "hello")
	p.Leave()
	mark := p.Mark()
	ok(t, g.Turn(soon(t), e, "answer"))
	cron := func(to string) map[string]any {
		return map[string]any{"op": "send", "chat_id": to, "content": "tea time", "metadata": map[string]any{"job_id": "tea", "notify": true}}
	}
	_, err := g.Must(soon(t), cron("tel"))
	ok(t, err)
	if res := value[gateway.Result](t)(g.Do(soon(t), cron("nobody"))); res.Success {
		t.Error("a delivery to nobody is taken")
	}
	p.Return(s)
	p.Final(mark, "the delivery", func(m device.Message) bool { return m.Source == frame.SourceCron })
	if got := finals(p, mark); !slices.Equal(got, []string{"answer", "tea time"}) {
		t.Errorf("the phone got %q", got)
	}
}

// A scheduled message in the middle of a turn comes at once, once, and does not end the turn.
func TestDeliveryDuringATurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Say("work")
	e := take(t, g, "work")
	ok(t, g.Begin(soon(t), e))
	p.Say("next")
	_, err := g.Must(soon(t), map[string]any{"op": "send", "chat_id": "tel", "content": "tea time", "metadata": map[string]any{"job_id": "tea", "notify": true}})
	ok(t, err)
	p.Final(0, "the delivery", func(m device.Message) bool { return m.Text == "tea time" && m.ReplyTo == "" })
	nothing(t, g) // the turn runs
	ok(t, g.Reply(soon(t), e, "done"))
	ok(t, g.End(soon(t), e))
	ok(t, g.Turn(soon(t), take(t, g, "next"), "done, too"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "done, too" })
	if got := finals(p, 0); !slices.Equal(got, []string{"tea time", "done", "done, too"}) {
		t.Errorf("the phone got %q", got)
	}
}

// A guest is nobody to the agent: not even a command of his reaches it, whatever it begins with; he comes back a hundred
// times and is one request. A person who is let in comes back a hundred times and is none.
func TestGuest(t *testing.T) {
	t.Parallel()
	s := start(t, "MOBILE_ALLOW_ALL_USERS=", "MOBILE_ALLOWED_USERS=")
	g := hello(t, config(s, ""))
	pending := func() int {
		var list struct {
			Pending []json.RawMessage `json:"pending"`
		}
		s.JSON(t, &list, "pairing", "list")
		return len(list.Pending)
	}
	for i, text := range []string{"/stop", "/new", "/approve", "/sethome", "/", "//", "hello"} {
		c, ready := open(t, s, "guest")
		if ready.Approved {
			t.Fatal("a guest is let in")
		}
		c.send(&frame.Text{ID: fmt.Sprint("m", i), Text: text})
		if m := c.final(); !strings.Contains(m.Text, "not approved") {
			t.Errorf("%q gets %q", text, m.Text)
		}
		c.send(&frame.Stop{ID: fmt.Sprint("s", i)})
		if e := find[*frame.Error](c); e.Code != frame.Forbidden {
			t.Errorf("a guest's stop gets %s", e.Code)
		}
		c.close()
	}
	nothing(t, g)
	if n := pending(); n != 1 {
		t.Fatalf("%d requests are waiting, want 1", n)
	}
	var inv struct {
		Code string `json:"code"`
	}
	s.JSON(t, &inv, "pair")
	c := dial(t, s)
	c.send(&frame.Hello{Pair: inv.Code, Device: frame.Device{ID: "friend"}})
	token := find[*frame.Ready](c).Token
	for i := range 100 {
		c.close() // a new connection each time, as after a lost network: nothing is replaced
		until(t, "the server to notice", func() bool { return s.Metrics(t)["hermes_mobile_device_connections"] == 0 })
		c = dial(t, s)
		c.send(&frame.Hello{Token: token, Device: frame.Device{ID: "friend"}})
		if r := find[*frame.Ready](c); !r.Approved || r.Token != "" {
			t.Fatalf("reconnect %d: %+v", i, r)
		}
	}
	if n := pending(); n != 1 {
		t.Errorf("%d requests are waiting, want 1", n)
	}
	c.send(&frame.Text{ID: "m1", Text: "/status"})
	ok(t, g.Turn(soon(t), take(t, g, "/status"), "fine"))
	if m := c.final(); m.Text != "fine" {
		t.Errorf("a friend gets %q", m.Text)
	}
}

// Words that answer a card as if they were typed to a person are a message like any other: they wait behind the card that
// the turn waits for, are never taken for its answer, and are not lost.
func TestAnswerInWords(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := scripted(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Say("ask 1")
	card := p.Card(0, frame.ExecApproval)
	p.Say("approve")
	p.Say("/approve")
	c, _ := open(t, s, "other") // a round trip of another device: the gateway has had its time
	c.send(&frame.Text{ID: "m", Text: "echo 2 x"})
	if m := c.final(); m.Text != "reply 2 x" {
		t.Errorf("the other device gets %q", m.Text)
	}
	if d := g.Decisions(); len(d) != 1 || d[0].Option != "" {
		t.Errorf("words decided a card: %+v", d)
	}
	mark := p.Mark()
	p.Choose(card, "deny", "")
	p.Final(mark, "the last answer", func(m device.Message) bool { return m.Text == "did not understand /approve" })
	if got := finals(p, mark); !slices.Equal(got, []string{"decided 1 deny", "did not understand approve", "did not understand /approve"}) {
		t.Errorf("the phone got %q", got)
	}
}

// A phone that reads nothing while the gateway streams to it and to another one: the other sees all in time, the server's
// memory stays bounded, and the slow one can have everything later.
func TestSlowPhone(t *testing.T) {
	t.Parallel()
	s := start(t, "MOBILE_OUTBOX_ENTRIES=100000")
	g := hello(t, config(s, ""))
	slow, ready := open(t, s, "slow") // its socket is not read from here on
	p := e2e.NewPhone(t, s, "quick")
	p.Online()
	before := s.Memory(t)
	peak := watch(t, s)
	const steps, replies = 5_000, 200
	body := strings.Repeat("s", 64<<10) // more than what the kernel holds
	for _, chat := range []string{"slow", "quick"} {
		if n := ops(t, g, steps, func(i int) map[string]any {
			return map[string]any{"op": "draft", "chat_id": chat, "draft_id": 1, "content": fmt.Sprint(i, " ", body[:i%4096])}
		}); n != steps {
			t.Fatalf("cut off after %d", n)
		}
	}
	for i := range replies {
		for _, chat := range []string{"slow", "quick"} {
			_, err := g.Must(soon(t), map[string]any{"op": "send", "chat_id": chat, "content": fmt.Sprint(i, " ", body)})
			ok(t, err)
		}
	}
	p.Final(0, "the last reply", func(m device.Message) bool { return m.Text == fmt.Sprint(replies-1, " ", body) })
	if used := peak() - before; used > 128<<20 {
		t.Errorf("a slow phone cost %.0f MiB", used/(1<<20))
	}
	slow.close()
	late := dial(t, s)
	late.send(&frame.Hello{Token: s.Token, Device: frame.Device{ID: "slow"}, Resume: &frame.Cursor{Epoch: ready.Resume.Epoch}})
	for i := range replies {
		whole := ""
		for end := false; !end; {
			m := find[*frame.Message](late)
			if m.ReplyTo == "" && strings.HasPrefix(m.Text, fmt.Sprint(steps-1, " ")) {
				continue // the preview that was never ended, or its end
			}
			whole += m.Text
			end = m.Final
		}
		if whole != fmt.Sprint(i, " ", body) {
			t.Fatalf("reply %d came as %d bytes, %.20q", i, len(whole), whole)
		}
	}
}

// No secret is in what the server writes, whatever was tried with it.
func TestNoSecretInTheLog(t *testing.T) {
	t.Parallel()
	s := start(t, "MOBILE_LOG_LEVEL=debug")
	hello(t, config(s, ""))
	c, _ := open(t, s, "tel")
	c.send(&frame.Text{ID: "m1", Text: "private words"})
	find[*frame.Accepted](c)
	bad := dial(t, s)
	bad.send(&frame.Hello{Token: s.Token + "x", Device: frame.Device{ID: "guess"}})
	if code := bad.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("a wrong token is closed with %d", code)
	}
	for _, url := range []string{s.URL() + "?token=" + s.Token, s.Base() + "/metrics?token=" + s.Token, s.Base() + "/relay?token=" + s.Secret} {
		if _, resp, err := websocket.Dial(soon(t), strings.Replace(url, "http", "ws", 1), &websocket.DialOptions{HTTPClient: c.http}); err == nil {
			t.Errorf("%d: a token in the address is taken", resp.StatusCode)
		}
	}
	log := s.LogTail(1 << 20)
	for _, secret := range []string{s.Token, s.Secret, "private words"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds a secret:\n%s", log)
		}
	}
	if !strings.Contains(log, "a token in the address") {
		t.Error("the log does not say that there was a token in the address")
	}
}
