package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// Revoking a device on its live connection: out at once, everything of it dropped, its id refused until it is unbound;
// other devices of its user go on.
func TestRevokeDevice(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d", withUser("anna"))
	w.connect("e", withUser("anna"))
	epoch := c.Ready.Resume.Epoch
	c.text("m1", "one")
	h := w.take()
	c.text("m2", "two")
	w.post("d", agent.Say{ID: "s1", Text: "step", N: h.N}, agent.Ask{Card: approvalCard("c1", h.N)}, agent.Say{ID: "s2", Text: "said", Final: true})
	c.send(&frame.Media{ID: "u1", Kind: "document", Filename: "f", Data: make([]byte, 5000), Parts: 3})
	c.sync()
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	if code := c.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	receive(t, w.agent.stops, "the agent to be stopped")
	for range 2 {
		if code, closed := w.open("d", withUser("anna")).refusal(); code != frame.AuthFailed || closed != int(frame.CloseNoAccess) {
			t.Errorf("the revoked device is refused with %s and %d", code, closed)
		}
		w.restart() // it stays refused
	}
	other := w.connect("e", withUser("anna"))
	other.send(&frame.Deliver{})
	if e := expect[*frame.Error](other); e.Code != frame.BadFrame && e.Code != frame.Forbidden {
		t.Errorf("got %s", show(e))
	}
	w.idle() // nothing of it is handed over any more
	ok(t, w.hub.Owner().Unbind(ctx, "d"))
	c = w.connect("d", withUser("anna"), withResume(epoch, 1))
	if !c.Ready.Resume.Lost || c.Ready.Resume.Epoch == epoch || c.Ready.Resume.To >= c.Ready.Resume.From {
		t.Errorf("resumed %+v", c.Ready.Resume)
	}
	c.quiet()
	c.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	if d := expect[*frame.PromptDone](c); !d.Expired {
		t.Errorf("the card of before: %s", show(d))
	}
	if a := c.text("m1", "one"); !a.Duplicate {
		t.Error("a message of before is taken again")
	}
	c.text("m3", "three")
	if h := w.take(); h.Text != "three" {
		t.Errorf("handed %q", h.Text)
	}
}

// Unbinding ends the connection, since it may be of the wrong app, and lets the next token have the id.
func TestUnbind(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.say("d", "1")
	expect[*frame.Message](c)
	if code, closed := w.open("d", withToken(extraToken)).refusal(); code != frame.Forbidden || closed != int(frame.CloseNoAccess) {
		t.Errorf("another token is refused with %s and %d", code, closed)
	}
	c.text("m1", "still here") // the bound connection is not touched by that
	ok(t, w.hub.Owner().Unbind(ctx, "d"))
	if code := c.closed(); code != int(frame.CloseTryLater) {
		t.Errorf("closed with %d", code)
	}
	w.connect("d", withToken(extraToken))
	if code, _ := w.open("d").refusal(); code != frame.Forbidden {
		t.Errorf("the first token is refused with %s", code)
	}
	for _, f := range []func() error{
		func() error { return w.hub.Owner().Unbind(ctx, "nobody") },
		func() error { return w.hub.Owner().Revoke(ctx, "nobody") },
		func() error { return w.hub.Owner().Rename(ctx, "nobody", "x") },
	} {
		if err := f(); !errors.Is(err, hub.ErrUnknownDevice) {
			t.Errorf("unknown device: %v", err)
		}
	}
	ok(t, w.hub.Owner().Rename(ctx, "d", "Anna's\x00 phone"))
	if d := value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx)); len(d) != 1 || d[0].Name != "Anna's phone" || !d[0].Connected || d[0].Token != "extra" {
		t.Errorf("devices %+v", d)
	}
	until(t, "the sessions of unknown ids to leave memory", func() bool { return w.hub.Sessions() == 1 })
}

// A token that is taken away ends the connections that came with it: of devices and of senders; others stay.
func TestTokenRemoved(t *testing.T) {
	w := newWorld(t, nil)
	code := w.invite(access.PairingCode{})
	paired := w.connect("paired", withPair(access.FormatCode(code)))
	main, extra, sender := w.connect("main"), w.connect("extra", withToken(extraToken)), w.connect("s", withToken(deliverToken))
	w.tokens.Replace([]access.Token{{Label: "main", Secret: token}, {Label: "extra", Secret: "another secret under the same label"}})
	w.hub.Owner().TokensChanged(map[uint64]access.Token{hub.TokenSum(token): {}, hub.TokenSum("another secret under the same label"): {}})
	for _, c := range []*client{extra, sender} {
		if code := c.closed(); code != int(frame.CloseNoAccess) {
			t.Errorf("%s is closed with %d", c.id, code)
		}
	}
	main.text("m1", "still here")
	paired.text("m1", "still here, with a token of my own")
	if code, closed := w.open("extra", withToken(extraToken)).refusal(); code != frame.AuthFailed || closed != int(frame.CloseNoAccess) {
		t.Errorf("the removed token is refused with %s and %d", code, closed)
	}
	if paired.Ready.Token == "" {
		t.Fatal("pairing gave no token")
	}
	c := w.connect("paired", withToken(paired.Ready.Token))
	if paired.closed() != int(frame.CloseReplaced) || c.Ready.Token != "" {
		t.Error("the device's own token")
	}
	if code, _ := w.open("other", withToken(paired.Ready.Token)).refusal(); code != frame.Forbidden {
		t.Errorf("with the token of another device: %s", code)
	}
	if code, _ := w.open("third", withPair(code)).refusal(); code != frame.AuthFailed {
		t.Errorf("a code that was used: %s", code)
	}
}

// The link drops after a one-time code was redeemed and before the device has its token: the same device may come again
// with the code, also after a restart, and nobody else may. Its first hello with its own token ends that.
func TestPairingCutBeforeReady(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.AllowAllUsers = false })
	code := w.invite(access.PairingCode{})
	paired := func(id string) bool {
		list, err := w.hub.Owner().Devices(ctx)
		ok(t, err)
		return len(list) == 1 && list[0].ID == id && list[0].Token == "device:"+id
	}
	cut := w.open("tel", withPair(code), slow()) // reads nothing: its ready is lost
	until(t, "the code to be redeemed", func() bool { return paired("tel") })
	_ = cut.ws.CloseNow()
	w.restart()
	for range 2 {
		if code, closed := w.open("thief", withPair(code)).refusal(); code != frame.AuthFailed || closed != int(frame.CloseNoAccess) {
			t.Errorf("another device with the code is refused with %s and %d", code, closed)
		}
	}
	again := w.connect("tel", withPair(code))
	first := again.Ready.Token
	if first == "" || !again.Ready.Approved {
		t.Fatalf("the second try gets %s", show(again.Ready))
	}
	again = w.connect("tel", withPair(code)) // that ready may have been lost, too
	if again.Ready.Token == "" || again.Ready.Token == first {
		t.Fatalf("the third try gets %s", show(again.Ready))
	}
	again.text("m1", "hello")
	if code, _ := w.open("tel", withToken(first)).refusal(); code != frame.AuthFailed {
		t.Errorf("the token that was replaced: %s", code)
	}
	w.connect("tel", withToken(again.Ready.Token))
	until(t, "the code to be used up", func() bool { return !value[bool](t)(w.store.Redeemed(ctx, "tel")) })
	if code, closed := w.open("tel", withPair(code)).refusal(); code != frame.AuthFailed || closed != int(frame.CloseNoAccess) {
		t.Errorf("the code after it was used up: %s and %d", code, closed)
	}
	// A code is no way around the binding of a device that it did not pair, nor around its owner's no.
	other := w.invite(access.PairingCode{})
	if code, _ := w.open("tel", withPair(other)).refusal(); code != frame.Forbidden {
		t.Errorf("a fresh code for a bound device: %s", code)
	}
	w.connect("tab", withPair(other))
	ok(t, w.hub.Owner().Revoke(ctx, "tab"))
	ok(t, w.hub.Owner().Unbind(ctx, "tab"))
	if code, _ := w.open("tab", withPair(other)).refusal(); code != frame.AuthFailed {
		t.Errorf("the code of a device that was revoked: %s", code)
	}
}

// A message of a stranger is answered with a code; its approval is told on the live connection, once, and holds from the
// next message on. Its revocation ends all connections of the user and drops what was kept.
func TestApprovalOnLiveConnections(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.AllowAllUsers = false })
	c, second := w.connect("d", withUser("anna")), w.connect("e", withUser("anna"))
	if c.Ready.Approved {
		t.Fatal("approved from the start")
	}
	for _, f := range []frame.Up{&frame.Stop{ID: "x"}, &frame.Answer{PromptID: "p", OptionID: "o"}, &frame.Call{ID: "c", Method: "devices.list", Params: []byte("{}")}} {
		c.send(f)
		if e := expect[*frame.Error](c); e.Code != frame.Forbidden {
			t.Errorf("a stranger's %T gets %s", f, show(e))
		}
	}
	if err := w.try("d", agent.Say{ID: "early", Text: "for a stranger", Final: true}); err != nil {
		t.Logf("an agent's message to a stranger: %v", err)
	}
	c.send(&frame.Text{ID: "m1", Text: "let me in"})
	var answer *frame.Message
	for answer == nil {
		if m := c.message(); m.ID != "early" {
			answer = m
		}
	}
	pending, _, err := w.pairing.List()
	ok(t, err)
	if len(pending) != 1 || pending[0].UserID != "anna" || answer.ReplyTo != "m1" || answer.Seq != 0 || !strings.Contains(answer.Text, "pairing code is ") {
		t.Fatalf("pending %+v, answer %s", pending, show(answer))
	}
	second.send(&frame.Text{ID: "m1", Text: "me, too"})
	if m := second.message(); !strings.Contains(m.Text, "wait") {
		t.Errorf("a second request: %s", show(m))
	}
	w.idle()
	user := value[access.User](t)(w.pairing.Approve(pending[0].RequestID))
	for range 2 { // told twice, as by the command and by the watcher
		ok(t, w.hub.Owner().UserApproved(ctx, user.UserID))
	}
	for _, c := range []*client{c, second} {
		expect[*frame.Approved](c)
		c.send(&frame.Text{ID: "m1", Text: "now of " + c.id})
		if a := expect[*frame.Accepted](c); a.Duplicate {
			t.Errorf("the refused message used its id up: %s", show(a))
		}
		w.reply(w.take(), "welcome")
		c.message()
		c.quiet()
	}
	if ready := w.connect("f", withUser("anna")).Ready; !ready.Approved {
		t.Error("another device of the user is not approved")
	}
	stranger := w.connect("g", withUser("bert"))

	ok(t, w.pairing.Revoke("anna"))
	ok(t, w.hub.Owner().UserRevoked(ctx, "anna"))
	for _, c := range []*client{c, second} {
		if code := c.closed(); code != int(frame.CloseNoAccess) {
			t.Errorf("closed with %d", code)
		}
	}
	stranger.send(&frame.Ping{ID: "p"}) // others stay
	expect[*frame.Pong](stranger)
	if r := w.connect("d", withUser("anna"), withResume(c.Ready.Resume.Epoch, 0)).Ready; r.Approved || !r.Resume.Lost || r.Resume.To >= r.Resume.From {
		t.Errorf("after the revocation %+v", r)
	}
	sender := w.connect("s", withToken(deliverToken))
	sender.send(&frame.Deliver{ID: "x", To: "d", Text: "for a stranger"})
	if e := expect[*frame.Error](sender); e.Code != frame.DeviceOffline {
		t.Errorf("a delivery to a stranger gets %s", show(e))
	}
}

// A user whom the settings let in anyway is not thrown out.
func TestRevokedAndLetInAnyway(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) {
		o.AllowAllUsers = false
		o.AllowedUsers = access.ParseList("anna")
	})
	c := w.connect("d", withUser("anna"))
	value[access.User](t)(w.pairing.ApproveUser("anna", ""))
	ok(t, w.pairing.Revoke("anna"))
	ok(t, w.hub.Owner().UserRevoked(ctx, "anna"))
	c.text("m1", "still here")
	if code, _ := w.open("e", withUser("bert")).refusal(); code != frame.AuthFailed {
		t.Errorf("a user who is not on the list is refused with %s", code)
	}
}

// A device that replaces its own connection again and again is told to wait; the connection it has stays.
func TestReplacedTooOften(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	for range 5 {
		next := w.connect("d")
		if code := c.closed(); code != int(frame.CloseReplaced) {
			t.Fatalf("replaced with %d", code)
		}
		c = next
	}
	refused := w.open("d")
	e := expect[*frame.Error](refused)
	if e.Code != frame.RateLimited || e.RetryAfter < 1 || refused.closed() != int(frame.CloseTryLater) {
		t.Errorf("the sixth in a minute gets %s", show(e))
	}
	c.text("m1", "still here")
	w.connect("e") // nobody else is limited
}

// The hello of a connection that never speaks.
func TestHelloTimeout(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.HelloTimeout = 20 * time.Millisecond })
	c := w.socket(false)
	if e := expect[*frame.Error](c); e.Code != frame.BadFrame || c.closed() != int(frame.CloseTryLater) {
		t.Errorf("got %s", show(e))
	}
	until(t, "the connection to be gone", func() bool { return w.hub.Connections() == 0 })
}

// TestTokenOfOneDevice: a token that is bound to a device lets that one in and no other, with another user or not, and its own
// device as ever. A binding that comes later ends the connections of others.
func TestTokenOfOneDevice(t *testing.T) {
	w := newWorld(t, nil)
	const bound = "0123456789abcdef-bound"
	list := []access.Token{{Label: "main", Secret: token}, {Label: "extra", Secret: extraToken}, {Label: "tel-1", Secret: bound, Device: "tel-1"}}
	w.tokens.Replace(list)
	c := w.connect("tel-1", withToken(bound))
	for _, id := range []string{"tel-2", "TEL-1", "tel-1.", "tel"} {
		refused := w.open(id, withToken(bound), withUser("tel-1"))
		if code, closed := refused.refusal(); code != frame.Forbidden || closed != int(frame.CloseNoAccess) {
			t.Errorf("%s with the token of another device is refused with %s and %d", id, code, closed)
		}
	}
	c.sync()
	other, free := w.connect("tel-3", withToken(extraToken)), w.connect("tel-4")
	list[1].Device = "tel-5"
	w.tokens.Replace(list)
	w.hub.Owner().TokensChanged(map[uint64]access.Token{hub.TokenSum(token): list[0], hub.TokenSum(extraToken): list[1], hub.TokenSum(bound): list[2]})
	if code := other.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	c.sync()
	free.sync()
}

// TestRequestsOfThePlugin: an app that was written for the Hermes plugin hermes-mobile asks for the catalogue of commands and the list
// of models by frames that are not of this protocol. Each is answered unsupported_frame with its id, and the connection goes on,
// however many come. (The names are the app's: whatever is not known is answered alike.)
func TestRequestsOfThePlugin(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	for i, name := range []string{"commands", "command_catalog", "commands_list", "get_commands", "models", "model_list", "list_models", "get_models", "Text", "hello2"} {
		id := fmt.Sprint("r", i)
		ok(t, c.ws.Write(ctx, websocket.MessageText, []byte(`{"t":"`+name+`","id":"`+id+`","session":"mobile:d","query":{"deep":[[[{}]]]}}`)))
		if e := expect[*frame.Error](c); e.Code != frame.Unsupported || e.Ref != id {
			t.Errorf("%s gets %s", name, show(e))
		}
	}
	c.text("m1", "still here")
	if h := w.take(); h.Text != "still here" {
		t.Errorf("handed %q", h.Text)
	}
	c.sync()
}
