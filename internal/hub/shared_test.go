package hub_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

func withName(name string) option { return func(d *dialing) { d.hello.Device.Name = name } }

// share connects a phone and a tablet of one user that share the phone's conversation.
func (w *world) share() (phone, tablet *client) {
	w.t.Helper()
	w.connect("phone", withUser("anna"), withName("Phone"))
	first := w.connect("tablet", withUser("anna"), withName("Tablet"))
	ok(w.t, w.hub.Owner().Join(ctx, "tablet", "phone"))
	if code := first.closed(); code != int(frame.CloseGoingAway) {
		w.t.Errorf("the tablet's connection ended with %d, want one that says to come again", code)
	}
	phone = w.connect("phone", withUser("anna"), withName("Phone"))
	tablet = w.tablet()
	return phone, tablet
}

func (w *world) tablet(opts ...option) *client {
	w.t.Helper()
	return w.connect("tablet", append([]option{withUser("anna"), withName("Tablet")}, opts...)...)
}

// both expects the same kind of frame on both devices.
func both[T frame.Down](a, b *client) (T, T) { return expect[T](a), expect[T](b) }

func TestSharedConversation(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	if r := tablet.Ready; r.Session != "mobile:phone" || !r.Capabilities.Shared || !phone.Ready.Capabilities.Shared || phone.Ready.Session != "mobile:phone" {
		t.Errorf("ready %s, %s", show(phone.Ready), show(tablet.Ready))
	}

	tablet.text("m1", "from the tablet")
	if e := expect[*frame.Echo](phone); e.ID != "m1" || e.Text != "from the tablet" || e.From != (frame.Peer{ID: "tablet", Name: "Tablet"}) || e.Seq == 0 {
		t.Errorf("the phone got %s", show(e))
	}
	h := w.take()
	if h.Device != "phone" || h.User != "anna" || h.Text != "from the tablet" {
		t.Errorf("the agent got %+v", h.Input)
	}
	w.reply(h, "hello both")
	a, b := both[*frame.Message](phone, tablet)
	if a.Text != "hello both" || b.Text != a.Text || a.ID != b.ID || b.ReplyTo != "m1" || a.Seq == 0 || b.Seq == 0 {
		t.Errorf("replies %s, %s", show(a), show(b))
	}

	phone.text("m2", "from the phone")
	if e := expect[*frame.Echo](tablet); e.ID != "m2" || e.From.ID != "phone" {
		t.Errorf("the tablet got %s", show(e))
	}
	w.reply(w.take(), "again")
	both[*frame.Message](phone, tablet)
	if r := tablet.text("m1", "once more"); !r.Duplicate {
		t.Errorf("the same id again: %s", show(r))
	}
	if r := phone.text("m1", "mine"); r.Duplicate {
		t.Error("ids of the two devices are mixed up")
	}
	expect[*frame.Echo](tablet)
	w.take()
}

// What the two write while a turn runs waits, and is handed over in the order in which it was accepted.
func TestSharedConversationHasOneTurn(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	phone.text("p1", "0")
	h := w.take()
	for i := 1; i <= 6; i++ {
		c := []*client{phone, tablet}[i%2]
		c.send(&frame.Text{ID: fmt.Sprint("n", i), Text: fmt.Sprint(i)})
		find(c, func(a *frame.Accepted) bool { return a.ID == fmt.Sprint("n", i) })
	}
	w.idle()
	for i := 1; i <= 6; i++ {
		w.reply(h, "done")
		if h = w.take(); h.Text != fmt.Sprint(i) {
			t.Fatalf("handed %q, want %d", h.Text, i)
		}
	}
	tablet.send(&frame.Stop{ID: "stop"})
	if device := receive(t, w.agent.stops, "the turn to be stopped"); device != "phone" {
		t.Errorf("stopped the turn of %s", device)
	}
}

// Exactly one answer counts, whichever device gives it; both are told who gave it, then and later.
func TestSharedCard(t *testing.T) {
	for _, winner := range []string{"phone", "tablet"} {
		t.Run(winner, func(t *testing.T) {
			w := newWorld(t, nil)
			phone, tablet := w.share()
			first, second, by := phone, tablet, frame.Peer{ID: "phone", Name: "Phone"}
			if winner == "tablet" {
				first, second, by = tablet, phone, frame.Peer{ID: "tablet", Name: "Tablet"}
			}
			w.post("phone", agent.Ask{Card: approvalCard("c1", 0)})
			p, q := both[*frame.Prompt](phone, tablet)
			if p.ID != "c1" || q.ID != "c1" || p.Session != "mobile:phone" || q.Session != p.Session {
				t.Errorf("shown %s, %s", show(p), show(q))
			}
			first.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
			check := func(d *frame.PromptDone) {
				t.Helper()
				if d.OptionID != "once" || d.By == nil || *d.By != by || d.Expired {
					t.Errorf("told %s", show(d))
				}
			}
			check(find[*frame.PromptDone](first, nil))
			check(expect[*frame.PromptDone](second))
			a := w.told()
			if a.answer.OptionID != "once" {
				t.Errorf("the agent was told %+v", a.answer)
			}
			second.send(&frame.Answer{ID: "a2", PromptID: "c1", OptionID: "deny"})
			check(expect[*frame.PromptDone](second))
			expect[*frame.Accepted](second)
			w.restart()
			second = w.tablet()
			second.sync()
			second.send(&frame.Answer{PromptID: "c1", OptionID: "deny"})
			check(find[*frame.PromptDone](second, nil))
			if a := w.told(); a.answer.OptionID != "once" { // it may not know
				t.Errorf("after a restart the agent was told %+v", a.answer)
			}
		})
	}
}

// Both answer at the same moment, many times: one decision, the same for agent and devices.
func TestSharedCardRace(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	for i := range 40 {
		id := fmt.Sprint("c", i)
		w.post("phone", agent.Ask{Card: approvalCard(id, 0)})
		both[*frame.Prompt](phone, tablet)
		start := make(chan struct{})
		errs := make(chan error, 2)
		for _, x := range []struct {
			c      *client
			option string
		}{{phone, "once"}, {tablet, "deny"}} {
			go func() { <-start; errs <- x.c.write(&frame.Answer{ID: "a" + id, PromptID: id, OptionID: x.option}) }()
		}
		close(start)
		ok(t, <-errs)
		ok(t, <-errs)
		a := w.told()
		a.taken(nil)
		for _, c := range []*client{phone, tablet} {
			done, receipt := false, false
			for !done || !receipt {
				f, err := c.any()
				ok(t, err)
				switch f := f.(type) {
				case *frame.PromptDone:
					if f.OptionID != a.answer.OptionID || f.By == nil || (f.By.ID == "phone") != (f.OptionID == "once") {
						t.Fatalf("told %s, the agent %+v", show(f), a.answer)
					}
					done = true
				case *frame.Accepted:
					receipt = true
				}
			}
			c.sync()
		}
	}
	w.idle()
}

// A device that is away gets all of it later, in order, once; a crash at any moment leaves nothing out.
func TestSharedOutboxes(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	tablet.drop()
	until(t, "the tablet to be gone", func() bool { return !w.live("tablet") })
	for i := range 70 {
		w.say("phone", fmt.Sprint(i))
	}
	find[*frame.Accepted](sendText(phone, "m1", "still there?"), nil)
	w.take()
	w = w.crash()
	var got []string
	c := w.tablet()
	for len(got) < 71 {
		f, err := c.any()
		ok(t, err)
		switch f := f.(type) {
		case *frame.Message:
			got = append(got, f.Text)
		case *frame.Echo:
			got = append(got, "echo "+f.Text)
		}
	}
	for i := range 70 {
		if got[i] != fmt.Sprint(i) {
			t.Fatalf("got %v", got)
		}
	}
	if got[70] != "echo still there?" {
		t.Errorf("last %q", got[70])
	}
	if h := w.take(); h.Device != "phone" || h.Text != "still there?" {
		t.Errorf("handed again %+v", h.Input)
	}
	c.quiet()
}

// What a member sent belongs to the conversation, also when the server dies before the lead has heard of it.
func TestSharedInputAfterACrash(t *testing.T) {
	w := newWorld(t, nil)
	_, tablet := w.share()
	w.agent.online(false)
	if r := find[*frame.Accepted](sendText(tablet, "m1", "one"), nil); !r.Queued {
		t.Errorf("receipt %s", show(r))
	}
	sendText(tablet, "m2", "two")
	find[*frame.Accepted](tablet, nil)
	w = w.crash()
	for _, want := range []string{"one", "two"} {
		h := w.take()
		if h.Text != want || h.Device != "phone" {
			t.Fatalf("handed %+v", h.Input)
		}
		w.reply(h, "re "+want)
	}
	got := texts(t, w.connect("phone", withUser("anna")).sync())
	if !slices.Equal(got, []string{"re one", "re two"}) {
		t.Errorf("the phone got %v", got)
	}
}

func sendText(c *client, id, text string) *client {
	c.w.t.Helper()
	c.send(&frame.Text{ID: id, Text: text})
	return c
}

// A reply grows on all devices, also on one that connects in the middle; so do the indicators.
func TestSharedStream(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	phone.text("m1", "hello")
	expect[*frame.Echo](tablet)
	h := w.take()
	find[*frame.Typing](tablet, func(f *frame.Typing) bool { return !f.Stop })
	w.post("phone", agent.Say{ID: "s1", Text: "one", N: h.N, ReplyTo: "m1"})
	find(tablet, func(m *frame.Message) bool {
		return m.ID == "s1" && m.Text == "one" && m.Edit && !m.Final && m.Seq == 0
	})
	find(phone, func(m *frame.Message) bool { return m.ID == "s1" && m.Text == "one" })

	tablet.drop()
	late := w.tablet(withDelta())
	find(late, func(m *frame.Message) bool { return m.ID == "s1" && m.Text == "one" })
	w.post("phone", agent.Say{ID: "s1", Text: "one two", N: h.N, ReplyTo: "m1"}, agent.ToolStep{ID: "t", Name: "search", State: "started", N: h.N})
	tool := false
	for {
		f, err := late.any()
		ok(t, err)
		if u, is := f.(*frame.Tool); is {
			tool = u.Turn == "m1"
		}
		if m, is := f.(*frame.Message); is {
			if m.Append == nil || *m.Append != " two" || m.At != 3 {
				t.Errorf("the step is %s", show(m))
			}
			break
		}
	}
	if !tool && expect[*frame.Tool](late).Turn != "m1" {
		t.Error("the tool belongs to another turn")
	}
	w.post("phone", agent.Say{ID: "s1", Text: "one two three", Final: true, N: h.N, ReplyTo: "m1"}, agent.Done{N: h.N})
	for _, c := range []*client{phone, late} {
		if m := find(c, func(m *frame.Message) bool { return m.Final }); m.Text != "one two three" || !m.Edit || m.Seq == 0 {
			t.Errorf("final %s", show(m))
		}
		find(c, func(f *frame.Typing) bool { return f.Stop })
		find(c, func(f *frame.Avatar) bool { return f.State == "idle" })
	}
	late.sync()
	phone.text("m2", "more")
	expect[*frame.Echo](late)
	find(late, func(f *frame.Avatar) bool { return f.State == "thinking" })
}

// An open card is shown again to a member that comes back, once, whether it had acknowledged it or not.
func TestSharedCardIsShownAgain(t *testing.T) {
	for _, acked := range []bool{false, true} {
		t.Run(fmt.Sprint("acknowledged ", acked), func(t *testing.T) {
			w := newWorld(t, nil)
			_, tablet := w.share()
			epoch := tablet.Ready.Resume.Epoch
			w.post("phone", agent.Ask{Card: approvalCard("c1", 0)})
			shown := expect[*frame.Prompt](tablet)
			var opts []option
			if acked {
				opts = append(opts, withResume(epoch, shown.Seq))
			} else {
				opts = append(opts, withResume(epoch, shown.Seq-1))
			}
			w.restart()
			again := w.tablet(opts...)
			p := expect[*frame.Prompt](again)
			if p.ID != "c1" || p.TimeoutSeconds <= 0 {
				t.Errorf("shown again %s", show(p))
			}
			again.send(&frame.Answer{PromptID: "c1", OptionID: "deny"})
			if d := expect[*frame.PromptDone](again); d.OptionID != "deny" || d.By == nil || d.By.ID != "tablet" {
				t.Errorf("done %s", show(d))
			}
			w.told()
			again.quiet()
		})
	}
}

// Files of the agent reach all devices; one that a person sends is shown to the others with a link of their own.
func TestSharedFiles(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	file := value[hashed](t)(w.put([]byte("hello")))
	w.post("phone", agent.SendFile{ID: "f1", File: agent.File{Kind: "document", Name: "a.txt", Hash: file.hash, Size: file.size}})
	a, b := both[*frame.Media](phone, tablet)
	if string(a.Data) != "hello" || string(b.Data) != "hello" || a.ID != "f1" || b.Seq == 0 {
		t.Errorf("files %s, %s", show(a), show(b))
	}
	tablet.send(&frame.Media{ID: "up", Kind: "document", Mime: "text/plain", Filename: "b.txt", Caption: "look", Data: []byte("bytes"), Parts: 1})
	expect[*frame.Accepted](tablet)
	e := expect[*frame.Echo](phone)
	if e.File == nil || e.Text != "look" || e.File.Filename != "b.txt" || e.File.Size != 5 || !strings.HasPrefix(e.File.URL, "http") {
		t.Errorf("echo %s", show(e))
	}
	if h := w.take(); h.File == nil || h.Device != "phone" {
		t.Errorf("the agent got %+v", h.Input)
	}
	if used := value[map[string]bool](t)(w.store.Hashes(ctx)); !used[w.hashOf("bytes")] {
		t.Error("the file may be swept while a device has a link to it")
	}
}

func (w *world) hashOf(text string) string {
	w.t.Helper()
	return value[hashed](w.t)(w.put([]byte(text))).hash
}

// Only devices of one user share a conversation, in one level, and only when told to.
func TestJoinIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.share()
	w.connect("third", withUser("anna"))
	w.connect("other", withUser("ben"))
	for _, x := range []struct{ id, conversation, why string }{
		{"phone", "phone", "own conversation already"},
		{"other", "phone", "different users"},
		{"third", "tablet", "has joined the conversation of phone itself"},
		{"phone", "third", "others have joined"},
		{"nobody", "phone", "nobody"},
		{"third", "nobody", "nobody"},
	} {
		if err := w.hub.Owner().Join(ctx, x.id, x.conversation); err == nil || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s joins %s: %v, want a word of %q", x.id, x.conversation, err, x.why)
		}
	}
	if err := w.hub.Owner().Leave(ctx, "third"); err == nil {
		t.Error("a device left what it had not joined")
	}
	ok(t, w.hub.Owner().Revoke(ctx, "third"))
	if err := w.hub.Owner().Join(ctx, "third", "phone"); err == nil {
		t.Error("a revoked device joined")
	}
}

// The end of sharing, on every way: after it neither gets anything of the other.
func TestSharingEnds(t *testing.T) {
	for name, end := range map[string]func(w *world){
		"the member leaves": func(w *world) { ok(w.t, w.hub.Owner().Leave(ctx, "tablet")) },
		"the member is revoked": func(w *world) {
			ok(w.t, w.hub.Owner().Revoke(ctx, "tablet"))
			ok(w.t, w.hub.Owner().Unbind(ctx, "tablet"))
		},
		"the lead is revoked": func(w *world) {
			ok(w.t, w.hub.Owner().Revoke(ctx, "phone"))
			ok(w.t, w.hub.Owner().Unbind(ctx, "phone"))
		},
		"the member is unbound":      func(w *world) { ok(w.t, w.hub.Owner().Unbind(ctx, "tablet")) },
		"the lead is unbound":        func(w *world) { ok(w.t, w.hub.Owner().Unbind(ctx, "phone")) },
		"the member is another's":    func(w *world) { w.connect("tablet", withUser("ben")) },
		"the lead is another's":      func(w *world) { w.connect("phone", withUser("ben")) },
		"after a restart it is left": func(w *world) { w.restart(); ok(w.t, w.hub.Owner().Leave(ctx, "tablet")) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.share()
			end(w)
			for _, id := range []string{"phone", "tablet"} {
				until(t, id+" to be alone", func() bool {
					for _, d := range value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx)) {
						if d.Conversation != "" {
							return false
						}
					}
					return true
				})
				c := w.connect(id, withUser(w.userOf(id)))
				if c.Ready.Session != "mobile:"+id || c.Ready.Capabilities.Shared {
					t.Errorf("ready %s", show(c.Ready))
				}
				c.sync()
				if id == "phone" {
					c.text("m1", "alone?")
					if h := w.take(); h.Device != "phone" {
						t.Errorf("the agent got %+v", h.Input)
					}
				} else {
					for _, f := range c.sync() {
						if e, is := f.(*frame.Echo); is {
							t.Errorf("the tablet got %s", show(e))
						}
					}
				}
			}
		})
	}
}

func (w *world) userOf(id string) string {
	w.t.Helper()
	for _, d := range value[[]hub.DeviceInfo](w.t)(w.hub.Owner().Devices(ctx)) {
		if d.ID == id {
			return cmp.Or(d.User, d.WasUser)
		}
	}
	w.t.Fatalf("no device %s", id)
	return ""
}

// A lead learns while it is connected that its conversation is shared, and that it is no longer.
func TestLeadIsTold(t *testing.T) {
	w := newWorld(t, nil)
	phone := w.connect("phone", withUser("anna"))
	w.connect("tablet", withUser("anna"))
	ok(t, w.hub.Owner().Join(ctx, "tablet", "phone"))
	if f := expect[*frame.CapabilitiesChanged](phone); !f.Capabilities.Shared {
		t.Errorf("told %s", show(f))
	}
	ok(t, w.hub.Owner().Leave(ctx, "tablet"))
	if f := expect[*frame.CapabilitiesChanged](phone); f.Capabilities.Shared {
		t.Errorf("told %s", show(f))
	}
}

// A delivery is for the device it names, shared conversation or not.
func TestDeliveryIsNotShared(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	d, err := w.hub.Owner().Deliver(ctx, "sender", &frame.Deliver{To: "phone", Text: "for you"})
	ok(t, err)
	if _, is := d.(*frame.Delivered); !is {
		t.Fatalf("answered %s", show(d))
	}
	phone.message()
	tablet.quiet()
}

// A store that fails for a moment delays what is shared, and loses nothing of it.
func TestSharedWhileTheStoreFails(t *testing.T) {
	w := newWorld(t, nil)
	phone, tablet := w.share()
	w.sql("CREATE TRIGGER test_take BEFORE DELETE ON share BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	w.say("phone", "one")
	w.say("phone", "two")
	phone.message()
	phone.message()
	tablet.quiet()
	w.sql("DROP TRIGGER test_take")
	for _, want := range []string{"one", "two"} {
		if m := tablet.message(); m.Text != want {
			t.Errorf("got %q, want %q", m.Text, want)
		}
	}
	tablet.quiet()
}
