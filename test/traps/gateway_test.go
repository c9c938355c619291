package traps

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/e2e"
	"hermes-mobile/test/gateway"
)

// A gateway that never acknowledges anything holds up its own devices and nobody else. What was said to it waits, and
// comes in order to the connection that takes it.
func TestNeverAnswers(t *testing.T) {
	t.Parallel()
	s := startFor(t, map[string]string{"mute": "a", "good": "*"})
	mute := hello(t, config(s, "mute"))
	good := scripted(t, config(s, "good"))
	a, b := e2e.NewPhone(t, s, "a"), e2e.NewPhone(t, s, "b")
	a.Online()
	b.Online()
	// A draft shows that it drops what comes again: to one that may not, nothing comes a second time.
	value[gateway.Result](t)(mute.Must(soon(t), map[string]any{"op": "draft", "chat_id": "a", "draft_id": 1, "content": ""}))
	for i := range 3 {
		a.Say(fmt.Sprint("message ", i))
	}
	b.Ask("echo 1 others do not notice", "reply 1 others do not notice")
	if !good.Online() {
		t.Error("the other gateway lost its link")
	}
	first := value[gateway.Frame](t)(mute.Next(soon(t), "inbound"))
	until(t, "the owner to be told", func() bool {
		out, err := s.CLI(soon(t), "status")
		return err == nil && strings.Contains(out, "gateway   mute, stalled") && strings.Contains(out, "gateway   good, online")
	})
	nothing(t, mute) // nothing more goes to a gateway that takes nothing
	mute.Close()
	next := hello(t, config(s, "mute"))
	for i := range 3 {
		e := take(t, next, fmt.Sprint("message ", i))
		if i == 0 && e.MessageID != first.Event.MessageID {
			t.Errorf("the event came again as %s, was %s", e.MessageID, first.Event.MessageID)
		}
		ok(t, next.Turn(soon(t), e, fmt.Sprint("answer ", i)))
	}
	a.Final(0, "the last answer", func(m device.Message) bool { return m.Text == "answer 2" })
	if got := finals(a, 0); !slices.Equal(got, []string{"answer 0", "answer 1", "answer 2"}) {
		t.Errorf("a got %q", got)
	}
	nothing(t, next)
}

// A gateway that accepts the connection and says no hello is not there for anybody, and stands in nobody's way.
func TestMuteConnection(t *testing.T) {
	t.Parallel()
	s := start(t)
	mute := raw(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Agent(frame.Away)
	if r := p.Receipt(p.Submit("anybody?")); !r.Queued {
		t.Errorf("the receipt says that the agent is there: %+v", r)
	}
	g := hello(t, config(s, ""))
	if code := ends(t, mute); code != 1012 {
		t.Errorf("the connection without hello was closed with %d", code)
	}
	ok(t, g.Turn(soon(t), take(t, g, "anybody?"), "yes"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "yes" })
}

// A hundred reconnects, one in the middle of each turn: everything once, in order, and nothing of them stays.
func TestReconnects(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := e2e.NewPhone(t, s, "tel")
	g := hello(t, config(s, ""))
	p.Online()
	const many = 100
	var want []string
	before := map[string]float64{}
	for i := range many {
		p.Submit(fmt.Sprint("message ", i))
		e := take(t, g, fmt.Sprint("message ", i))
		ok(t, g.Begin(soon(t), e))
		_, err := g.Must(soon(t), map[string]any{"op": "draft", "chat_id": "tel", "draft_id": i, "content": "half", "metadata": map[string]any{"reply_to_message_id": e.MessageID}})
		ok(t, err)
		g.Close()
		g = hello(t, config(s, ""))
		ok(t, g.Reply(soon(t), e, fmt.Sprint("answer ", i)))
		ok(t, g.End(soon(t), e))
		want = append(want, fmt.Sprint("answer ", i))
		if i == 9 {
			before = s.Metrics(t)
		}
	}
	p.Final(0, "the last answer", func(m device.Message) bool { return m.Text == want[many-1] })
	if got := finals(p, 0); !slices.Equal(got, want) {
		t.Errorf("the phone got %q", got)
	}
	nothing(t, g)
	until(t, "what the reconnects left to go", func() bool {
		after := s.Metrics(t)
		return after["go_goroutines"] <= before["go_goroutines"]+5 && after["process_open_fds"] <= before["process_open_fds"]+5
	})
	if n := s.Metrics(t)["go_memstats_heap_inuse_bytes"] - before["go_memstats_heap_inuse_bytes"]; n > 32<<20 {
		t.Errorf("ninety reconnects cost %.0f MiB", n/(1<<20))
	}
}

// Two gateways dial with the same id: the newer has it, nothing is sent to both, and the owner can see it. A second hello
// on one connection is answered and changes nothing.
func TestSameID(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := e2e.NewPhone(t, s, "tel")
	g := hello(t, config(s, ""))
	ok(t, g.Hello(soon(t), "relay"))
	p.Online()
	p.Submit("message 0")
	e := take(t, g, "message 0")
	nothing(t, g) // its receipt has arrived, or the event would come again
	for range 3 {
		next := hello(t, config(s, ""))
		if code := ends(t, g); code != 1012 {
			t.Errorf("the older connection was closed with %d", code)
		}
		g = next
	}
	nothing(t, g)
	ok(t, g.Turn(soon(t), e, "answer 0"))
	p.Submit("message 1")
	ok(t, g.Turn(soon(t), take(t, g, "message 1"), "answer 1"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "answer 1" })
	if got := finals(p, 0); !slices.Equal(got, []string{"answer 0", "answer 1"}) {
		t.Errorf("the phone got %q", got)
	}
	if n := s.Metrics(t)["hermes_mobile_gateway_events_total"]; n < 3 {
		t.Errorf("%v events of the gateway are counted", n)
	}
}

// A token that is five minutes and one second old is past its time. Gateways make one for each dial, so that is a clock
// which is behind: two minutes are forgiven, more is refused, with the difference in the log.
func TestOldToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, age := range []time.Duration{0, 301 * time.Second, 415 * time.Second} {
		g, err := gateway.Dial(soon(t), config(s, ""), time.Now().Add(-age))
		if err != nil {
			t.Errorf("a token %s old: %v", age, err)
			continue
		}
		g.Close()
	}
	for name, made := range map[string]time.Time{"old": time.Now().Add(-425 * time.Second), "of yesterday": time.Now().Add(-24 * time.Hour), "of tomorrow": time.Now().Add(24 * time.Hour)} {
		var no *gateway.Refusal
		if g, err := gateway.Dial(soon(t), config(s, ""), made); !errors.As(err, &no) || no.Status != http.StatusUnauthorized {
			if err == nil {
				g.Close()
			}
			t.Errorf("a token that is %s: %v", name, err)
		}
	}
	if log := s.LogTail(50); !strings.Contains(log, "clock") || strings.Contains(log, s.Secret) {
		t.Errorf("the log says nothing of the clocks, or too much:\n%s", log)
	}
}

// Ops that were never advertised, and what is no op at all, get an answer that says so; the link and the turn go on.
func TestUnknownOps(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	sent := p.Submit("hello")
	e := take(t, g, "hello")
	ok(t, g.Begin(soon(t), e))
	for _, op := range []string{"follow_up", "task_card", "task_card_stop", "thread_create", "thread_rename", "delete", "fly", "", "SEND"} {
		res := value[gateway.Result](t)(g.Do(soon(t), map[string]any{"op": op, "chat_id": "tel", "content": "x", "message_id": "m"}))
		if res.Success || res.Error == "" {
			t.Errorf("%q: %+v", op, res)
		}
	}
	for _, line := range []string{"null", "[]", "7", `"x"`, "{}", "{", "\x00\xff", `{"type":"task"}`, `{"type":"inbound","event":{}}`, ""} {
		ok(t, g.Line(soon(t), []byte(line+"\n")))
	}
	ok(t, g.Reply(soon(t), e, "still here"))
	ok(t, g.End(soon(t), e))
	if m := p.Answered(0, sent.ID); m.Text != "still here" || len(p.Finals(0)) != 1 {
		t.Errorf("the phone got %q", finals(p, 0))
	}
}

// A line just over 1 MiB in both directions: a reply of that length comes whole; a message that would be more than a
// gateway reads is refused with words, and the link stays.
func TestLineOverOneMebibyte(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	fits := strings.Repeat("y", 1<<20-4096) // with what stands around it just below 1 MiB
	p.Submit(fits)
	e := take(t, g, fits)
	long := strings.Repeat("x", 1<<20+1)
	ok(t, g.Turn(soon(t), e, long))
	if m := p.Final(0, "the long reply", func(m device.Message) bool { return m.ReplyTo != "" }); m.Text != long {
		t.Errorf("%d bytes came of %d", len(m.Text), len(long))
	}
	mark := p.Mark()
	id := p.Say(strings.Repeat("z", 1<<20))
	if m := p.Answered(mark, id); !strings.Contains(m.Text, "long") {
		t.Errorf("the refusal is %q", m.Text)
	}
	nothing(t, g)
	p.Submit("short")
	ok(t, g.Turn(soon(t), take(t, g, "short"), "fine"))
	p.Final(mark, "the answer", func(m device.Message) bool { return m.Text == "fine" })
}

// A stop during a turn is an interrupt; what waited behind the turn comes after it. The text /stop is the same.
func TestStopDuringTurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	for i, stop := range []func(){
		func() { ok(t, p.Stop(soon(t))) },
		func() { p.Say("/stop") },
	} {
		mark := p.Mark()
		p.Submit("work")
		e := take(t, g, "work")
		ok(t, g.Begin(soon(t), e))
		if i == 0 {
			p.Say("next") // waits
		}
		stop()
		f := value[gateway.Frame](t)(g.Next(soon(t), "interrupt_inbound"))
		if f.SessionKey != "agent:main:relay:dm:tel" || f.ChatID != "tel" {
			t.Errorf("interrupt %+v", f)
		}
		nothing(t, g)
		ok(t, g.Reply(soon(t), e, "half"))
		ok(t, g.End(soon(t), e))
		if m := p.Final(mark, "what was said", func(m device.Message) bool { return m.Text == "half" }); !m.Interrupted {
			t.Error("what a stopped turn said is not marked")
		}
		if i == 0 {
			ok(t, g.Turn(soon(t), take(t, g, "next"), "and on"))
			p.Final(mark, "the next answer", func(m device.Message) bool { return m.Text == "and on" })
		}
	}
	nothing(t, g)
}

// Three people write while a turn of one of them runs: the others' messages go to the gateway at once, one event at a
// time; hers wait for the end of her turn, commands too.
func TestThreeWriteDuringATurn(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	ann, bob, cid := e2e.NewPhone(t, s, "ann"), e2e.NewPhone(t, s, "bob"), e2e.NewPhone(t, s, "cid")
	for _, p := range []*e2e.Phone{ann, bob, cid} {
		p.Online()
	}
	ann.Submit("work")
	e := take(t, g, "work")
	ok(t, g.Begin(soon(t), e))
	ann.Say("second")
	ann.Say("/status")
	bob.Say("from bob")
	cid.Say("from cid")
	first := value[gateway.Frame](t)(g.Next(soon(t), "inbound"))
	nothing(t, g) // one event at a time, until its receipt
	ok(t, g.Write(soon(t), map[string]any{"type": "inbound_ack", "bufferId": first.BufferID}))
	second := value[gateway.Event](t)(g.Take(soon(t)))
	got := []string{first.Event.Text, second.Text}
	slices.Sort(got)
	if !slices.Equal(got, []string{"from bob", "from cid"}) {
		t.Errorf("the gateway got %q", got)
	}
	for _, e := range []gateway.Event{first.Event, second} {
		ok(t, g.Turn(soon(t), e, "to "+e.Chat))
	}
	bob.Final(0, "the answer", func(m device.Message) bool { return m.Text == "to bob" })
	cid.Final(0, "the answer", func(m device.Message) bool { return m.Text == "to cid" })
	nothing(t, g) // ann's turn runs
	ok(t, g.Reply(soon(t), e, "done"))
	ok(t, g.End(soon(t), e))
	for _, text := range []string{"second", "/status"} {
		ok(t, g.Turn(soon(t), take(t, g, text), "did "+text))
	}
	ann.Final(0, "the last answer", func(m device.Message) bool { return m.Text == "did /status" })
}

// Two cards are open in one turn, with ids that a gateway gave twice or not at all; they are answered in reverse order,
// and one of them twice.
func TestTwoCards(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Submit("work")
	e := take(t, g, "work")
	ok(t, g.Begin(soon(t), e))
	ids := []string{"aa.1", "aa.2", "aa.2", ""}
	for i, id := range ids {
		_, err := g.Must(soon(t), map[string]any{"op": "prompt", "chat_id": "tel", "content": fmt.Sprint("question ", i), "prompt_kind": "approval", "prompt_id": id,
			"options": []any{map[string]any{"id": "once", "label": "Yes"}, map[string]any{"id": "deny", "label": "No"}}})
		ok(t, err)
	}
	until(t, "the cards", func() bool { return len(cards(p, 0)) == len(ids) })
	shown := cards(p, 0)
	seen := map[string]bool{"": true}
	for _, c := range shown {
		if seen[c.ID] {
			t.Errorf("a card has the id %q", c.ID)
		}
		seen[c.ID] = true
	}
	for i := len(ids) - 1; i >= 0; i-- {
		option := []string{"once", "deny"}[i%2]
		if d := p.Choose(shown[i], option, ""); d.OptionID != option || d.Expired {
			t.Errorf("card %d ended with %+v", i, d)
		}
		ev := value[gateway.Event](t)(g.Take(soon(t)))
		if ev.Prompt != ids[i] || ev.Option != option {
			t.Errorf("answer %+v to the prompt %q", ev, ids[i])
		}
		mark := p.Mark()
		out, err := p.Answer(soon(t), shown[i].ID, "once", "")
		ok(t, err)
		p.Receipt(out)
		for _, ev := range p.Since(mark) {
			if d, is := ev.(device.CardDone); is && (d.ID != shown[i].ID || d.OptionID != option) {
				t.Errorf("the second answer to card %d got %+v", i, d)
			}
		}
	}
	nothing(t, g)
	ok(t, g.Reply(soon(t), e, "done"))
	ok(t, g.End(soon(t), e))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "done" })
}

// The indicator never stays on: neither when the gateway works on something by itself and stops, nor when it is lost.
func TestTypingEnds(t *testing.T) {
	t.Parallel()
	s := start(t)
	g := hello(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel", func(c *device.Config) { c.TypingTimeout = 10 * patience }) // not by the phone's own doing
	p.Online()
	p.Say("work")
	e := take(t, g, "work")
	ok(t, g.Turn(soon(t), e, "done"))
	p.Final(0, "the answer", func(m device.Message) bool { return m.Text == "done" })
	p.Idle()
	mark := p.Mark()
	for typing := false; !typing; { // a tick right after a turn is that turn's
		_, err := g.Must(soon(t), map[string]any{"op": "draft", "chat_id": "tel", "draft_id": 1, "content": "by itself"})
		ok(t, err)
		_, err = g.Must(soon(t), map[string]any{"op": "typing", "chat_id": "tel"})
		ok(t, err)
		for _, ev := range p.Since(mark) {
			m, is := ev.(device.Message)
			typing = typing || is && m.Text == "by itself"
		}
	}
	g.Close()
	m := p.Final(mark, "the end of what was begun", func(m device.Message) bool { return strings.HasPrefix(m.Text, "by itself") })
	if !m.Interrupted {
		t.Error("what the gateway never ended is not marked")
	}
	p.Idle()
}

// A gateway crashed with a card open. Its next process knows nothing of the card: the answer is for nobody, and the
// conversation goes on as soon as it is clear that nothing works on it.
func TestCardOfACrashedGateway(t *testing.T) {
	t.Parallel()
	s := start(t)
	first := scripted(t, config(s, ""))
	p := e2e.NewPhone(t, s, "tel")
	p.Online()
	p.Say("ask 1")
	card := p.Card(0, frame.ExecApproval)
	first.Close()
	second := scripted(t, config(s, ""))
	until(t, "the next process", second.Online)
	p.Online()
	mark := p.Mark()
	p.Say("echo 2 x") // waits for the card
	if d := p.Choose(card, "once", ""); d.OptionID != "once" {
		t.Errorf("the card ended with %+v", d)
	}
	p.Final(mark, "the next answer", func(m device.Message) bool { return m.Text == "reply 2 x" })
	if c := second.Counts(); c.Strangers != 1 || len(second.Faults()) != 0 {
		t.Errorf("the gateway %+v, faults %v", c, second.Faults())
	}
}
