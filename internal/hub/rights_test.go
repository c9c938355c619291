package hub_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/notify"
)

// rights changes what a device may do, which it is told at once where it is connected.
func (w *world) rights(id string, change map[string]bool) hub.Rights {
	w.t.Helper()
	return value[hub.Rights](w.t)(w.hub.Owner().SetRights(ctx, id, change))
}

func off(names ...string) map[string]bool {
	change := map[string]bool{}
	for _, name := range names {
		change[name] = false
	}
	return change
}

// forbidden expects that a frame is refused for a right that is missing.
func (c *client) forbidden(ref string) {
	c.w.t.Helper()
	if e := find[*frame.Error](c, nil); e.Code != frame.Forbidden || e.Ref != ref || !strings.Contains(e.Message, "the owner") {
		c.w.t.Errorf("answered %s, want that %s is forbidden by the owner", show(e), ref)
	}
}

func TestWithoutWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.loop = true // deliveries come from this machine
	w.restart()
	c, other := w.connect("d"), w.connect("e")
	c.text("m1", "before")
	h := w.take()
	part := func(n int) *frame.Media {
		return &frame.Media{ID: "f1", Kind: "document", Mime: "text/plain", Filename: "a.txt", Data: make([]byte, frame.MinChunk), Part: n, Parts: 2}
	}
	c.send(part(0))
	c.send(&frame.Deliver{ID: "d1", To: "e", Text: "before"})
	find[*frame.Delivered](c, nil)
	other.message()

	if r := w.rights("d", off("write")); r != (hub.Rights{Answer: true, Call: true}) {
		t.Errorf("rights %+v", r)
	}
	if k := find[*frame.CapabilitiesChanged](c, nil).Capabilities; k.Text || k.Audio || k.Media || k.Stop || k.Deliver || !k.Prompt || !k.Resume {
		t.Errorf("told %+v", k)
	}
	c.send(part(1))
	c.forbidden("f1")
	c.send(&frame.Text{ID: "m2", Text: "after"})
	c.forbidden("m2")
	c.send(&frame.Audio{ID: "a1", Format: "wav", Data: []byte("RIFF")})
	c.forbidden("a1")
	c.send(&frame.Stop{ID: "s1"})
	c.forbidden("s1")
	c.send(&frame.Stop{})
	c.forbidden("")
	c.send(&frame.Deliver{ID: "d2", To: "e", Text: "after"})
	c.forbidden("d2")
	// What was accepted stays so, and its reply comes.
	if r := c.text("m1", "before"); !r.Duplicate {
		t.Errorf("said again: %s", show(r))
	}
	c.send(&frame.Deliver{ID: "d1", To: "e", Text: "before"})
	if d := find[*frame.Delivered](c, nil); d.ID != "d1" {
		t.Errorf("delivered again: %s", show(d))
	}
	w.reply(h, "hello")
	if m := c.message(); m.Text != "hello" {
		t.Errorf("reply %s", show(m))
	}
	other.quiet()
	if len(w.agent.stops) != 0 {
		t.Error("the agent was stopped")
	}
	w.idle()

	w.restart()
	if c = w.connect("d"); c.Ready.Capabilities.Text || c.Ready.Capabilities.Stop {
		t.Errorf("after a restart: %s", show(c.Ready))
	}
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	find[*frame.Prompt](c, nil)
	c.send(&frame.Answer{ID: "p1", PromptID: "c1", OptionID: "once"}) // is a right of its own
	find[*frame.PromptDone](c, nil)
	w.rights("d", map[string]bool{"write": true})
	if k := find[*frame.CapabilitiesChanged](c, nil).Capabilities; !k.Text || !k.Media || !k.Stop || !k.Deliver {
		t.Errorf("told %+v", k)
	}
	c.text("m2", "after")
	w.take()
}

func TestWithoutAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect("d")
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](c)
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "deny"})
	find[*frame.PromptDone](c, nil)
	find[*frame.Accepted](c, nil)
	w.told().taken(nil)

	w.rights("d", off("answer"))
	if k := find[*frame.CapabilitiesChanged](c, nil).Capabilities; k.Prompt || !k.Text {
		t.Errorf("told %+v", k)
	}
	w.post("d", agent.Ask{Card: approvalCard("c2", 0)})
	if p := find[*frame.Prompt](c, nil); p.ID != "c2" { // to be read
		t.Errorf("shown %s", show(p))
	}
	c.send(&frame.Answer{ID: "a2", PromptID: "c2", OptionID: "once"})
	c.forbidden("a2")
	c.send(&frame.Answer{PromptID: "c2", OptionID: "once"})
	c.forbidden("c2")
	c.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "deny"})
	if r := find[*frame.Accepted](c, nil); !r.Duplicate {
		t.Errorf("answered again: %s", show(r))
	}
	for i, text := range []string{"/approve", " /Approve@bot session", "/deny\nno", "/always", "/cancel"} {
		id := string(rune('p' + i))
		c.send(&frame.Text{ID: id, Text: text})
		c.forbidden(id)
	}
	w.idle()
	w.agent.online(false)
	if k := find[*frame.CapabilitiesChanged](c, nil).Capabilities; k.Prompt {
		t.Errorf("told %+v", k)
	}
	w.agent.online(true)
	find[*frame.CapabilitiesChanged](c, nil)
	c.text("m1", "/approvements are text")
	w.take()
	w.rights("d", map[string]bool{"answer": true})
	find[*frame.CapabilitiesChanged](c, nil)
	c.send(&frame.Answer{ID: "a2", PromptID: "c2", OptionID: "once"})
	if a := w.told(); a.card.ID != "c2" || a.answer.OptionID != "once" {
		t.Errorf("told %+v", a)
	}
}

// While the agent is away nobody knows what it can do, and answers are taken all the same.
func TestAnswersAreOfferedWhileTheAgentIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.agent.set(func(s *agent.Status) { s.Online, s.Prompt = false, false })
	if k := w.connect("d").Ready.Capabilities; !k.Prompt {
		t.Errorf("ready %+v", k)
	}
}

func TestWithoutCall(t *testing.T) {
	t.Parallel()
	w, agent := callWorld(t, map[string][]string{"d": {"models.list"}}, nil)
	c := w.connect("d")
	w.rights("d", off("call"))
	if got := find[*frame.CapabilitiesChanged](c, nil).Capabilities; !slices.Equal(got.Call, []string{"devices.list", "devices.revoke"}) || !got.Text || !got.Prompt {
		t.Errorf("told %+v", got)
	}
	if r := c.call("models.list", "{}"); r.Err == nil || r.Err.Code != "forbidden" {
		t.Errorf("models.list: %s", show(r))
	}
	if r := c.call("jobs.list", "{}"); r.Err == nil || r.Err.Code != "unknown_method" {
		t.Errorf("jobs.list: %s", show(r))
	}
	if r := c.call("devices.list", "{}"); r.Err != nil {
		t.Errorf("devices.list: %s", show(r))
	}
	if len(agent.asked) != 0 {
		t.Error("the agent was asked")
	}
	w.rights("d", map[string]bool{"call": true})
	if got := find[*frame.CapabilitiesChanged](c, nil).Capabilities.Call; !slices.Contains(got, "models.list") {
		t.Errorf("offered %q", got)
	}
}

// In a shared conversation rights are the device's own, whosever the conversation is.
func TestRightsInASharedConversation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	phone, tablet := w.share()
	w.rights("tablet", off("write", "answer"))
	find[*frame.CapabilitiesChanged](tablet, nil)
	phone.quiet()
	tablet.send(&frame.Text{ID: "m1", Text: "no"})
	tablet.forbidden("m1")
	phone.text("m1", "yes")
	if e := find[*frame.Echo](tablet, nil); e.Text != "yes" {
		t.Errorf("the tablet got %s", show(e))
	}
	w.reply(w.take(), "hello both")
	phone.message()
	tablet.message()
	w.post("phone", agent.Ask{Card: approvalCard("c1", 0)})
	find[*frame.Prompt](phone, nil)
	find[*frame.Prompt](tablet, nil)
	tablet.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	tablet.forbidden("a1")
	w.idle()

	// The lead's rights are not those of who has joined it.
	w.rights("phone", off("write", "answer"))
	w.rights("tablet", map[string]bool{"write": true, "answer": true})
	find[*frame.CapabilitiesChanged](tablet, nil)
	phone.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	phone.forbidden("a1")
	tablet.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "deny"})
	if d := find[*frame.PromptDone](phone, nil); d.OptionID != "deny" || d.By == nil || d.By.ID != "tablet" {
		t.Errorf("the phone got %s", show(d))
	}
	tablet.send(&frame.Text{ID: "m2", Text: "now"})
	if h := w.take(); h.Text != "now" {
		t.Errorf("the agent got %+v", h.Input)
	}
}

func TestPushWithoutAnswer(t *testing.T) {
	t.Parallel()
	w, tokens := actionWorld(t)
	w.rights("d", off("answer"))
	if o, err := w.hub.Act(ctx, tokens["once"]); !errors.Is(err, notify.ErrRejected) {
		t.Errorf("%+v %v", o, err)
	}
	w.post("d", agent.Ask{Card: approvalCard("c2", 0)})
	if n := w.notified(); n.Type != "card" || n.ID != "c2" || n.Body == "" || n.Actions != nil {
		t.Errorf("%s", n.raw.Body)
	}
	w.idle()
	w.rights("d", map[string]bool{"answer": true})
	if o, err := w.hub.Act(ctx, tokens["once"]); err != nil || o.OptionID != "once" {
		t.Errorf("%+v %v", o, err)
	}
}

func TestRightsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect("d")
	if r := w.rights("d", nil); r != (hub.Rights{Write: true, Answer: true, Call: true}) {
		t.Errorf("of a new device: %+v", r)
	}
	w.rights("d", map[string]bool{"write": true})
	c.quiet() // nothing has changed
	if _, err := w.hub.Owner().SetRights(ctx, "d", map[string]bool{"write": false, "fly": true}); err == nil || !strings.Contains(err.Error(), `"fly"`) {
		t.Errorf("an unknown right: %v", err)
	}
	if r := w.rights("d", nil); !r.Write {
		t.Error("half a change was made")
	}
	w.sql("CREATE TRIGGER test_rights BEFORE UPDATE OF may_call ON device BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
	if _, err := w.hub.Owner().SetRights(ctx, "d", off("call")); err == nil {
		t.Error("changed without being stored")
	}
	w.sql("DROP TRIGGER test_rights")
	c.quiet()
	w.rights("d", off("call", "answer"))
	find[*frame.CapabilitiesChanged](c, nil)
	w = w.crash()
	w.connect("d", withName("Another"))
	ok(t, w.hub.Owner().Unbind(ctx, "d"))
	want := hub.Rights{Write: true}
	if r := w.rights("d", nil); r != want {
		t.Errorf("after a crash, a hello and an unbind: %+v", r)
	}
	if list := value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx)); list[0].Rights != want {
		t.Errorf("listed %+v", list[0])
	}
	if _, err := w.hub.Owner().SetRights(ctx, "nobody", off("call")); !errors.Is(err, hub.ErrUnknownDevice) {
		t.Errorf("nobody's: %v", err)
	}
}
