package hub_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/push/pushtest"
)

func TestPushCalls(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	c := w.connect("d")
	var key struct{ Key string }
	if r := c.call("push.key", "{}"); json.Unmarshal(r.Result, &key) != nil || len(key.Key) != 87 {
		t.Errorf("push.key: %s", show(r))
	}
	good := registration(w.service.Subscribe(), nil)
	for params, says := range map[string]string{
		`{}`: "kind", `{"kind":5}`: "form", strings.Replace(good, "webpush", "sms", 1): "kind",
		strings.Replace(good, pushtest.Host, "127.0.0.2", 1):                               "MOBILE_PUSH_HOSTS",
		strings.Replace(good, `"kind"`, `"quiet":{"from":"25:00"},"kind"`, 1):              "quiet.from",
		strings.Replace(good, `"p256dh":"B`, `"p256dh":"A`, 1):                             "p256dh",
		strings.Replace(good, `"keys":{`, `"keys":null,"was":{`, 1):                        "keys",
		strings.Replace(good, `"kind"`, `"quiet":{"from":"22:00","to":"07:00"},"kind"`, 1): "quiet.tz",
	} {
		if r := c.call("push.register", params); r.Err == nil || r.Err.Code != "bad_params" || !strings.Contains(r.Err.Message, says) {
			t.Errorf("push.register %s: %s", params, show(r))
		}
	}
	if r := c.call("push.test", "{}"); r.Err == nil || r.Err.Code != "not_found" {
		t.Errorf("push.test of nothing: %s", show(r))
	}
	sub := w.register(c, nil)
	for range 4 {
		w.register(c, nil)
	}
	if r := c.call("push.register", good); r.Err == nil || r.Err.Code != "too_many" {
		t.Errorf("a sixth: %s", show(r))
	}
	if r := c.call("push.register", registration(sub, map[string]any{"content": true})); r.Err != nil {
		t.Errorf("the first again: %s", show(r))
	}
	test := func() string { return string(c.call("push.test", `{"endpoint":"`+sub.Endpoint+`"}`).Result) }
	if got := test(); got != `{"ok":true,"status":201}` {
		t.Errorf("push.test: %s", got)
	}
	if n := w.notified(); n.Type != "test" || n.Body == "" || !strings.HasSuffix(sub.Endpoint, n.raw.Path) {
		t.Errorf("%s", n.raw.Body)
	}
	w.service.Answer(func(_ pushtest.Notification, rw http.ResponseWriter) { rw.WriteHeader(http.StatusGone) })
	var answer struct {
		OK     bool
		Status int
		Reason string
	}
	if got := test(); json.Unmarshal([]byte(got), &answer) != nil || answer.OK || answer.Status != 410 || !strings.Contains(answer.Reason, "register anew") {
		t.Errorf("push.test of one that is gone: %s", got)
	}
	w.notified()
	until(t, "the registration to go", func() bool { return len(value[[][]byte](t)(w.store.Notices().Endpoints(ctx, 1))) == 4 })
	if r := c.call("push.unregister", "{}"); r.Err != nil || len(value[[][]byte](t)(w.store.Notices().Endpoints(ctx, 1))) != 0 {
		t.Errorf("push.unregister: %s", show(r))
	}
	w.service.Answer(nil)
	w.register(c, nil)
	for range 5 {
		c.call("push.test", "{}")
	}
	if r := c.call("push.test", "{}"); r.Err == nil || r.Err.Code != "rate_limited" {
		t.Errorf("more than five tests a minute: %s", show(r))
	}
}

func TestPushIsOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	c := w.connect("d")
	if caps := c.Ready.Capabilities; caps.Push || len(caps.Call) != 2 {
		t.Errorf("capabilities %+v", caps)
	}
	if r := c.call("push.key", "{}"); r.Err == nil || r.Err.Code != "unknown_method" {
		t.Errorf("push.key: %s", show(r))
	}
}

// One that the service does not know any more is forgotten, others stay; a service that is busy is
// asked again.
func TestPushServiceFails(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	c := w.connect("d")
	gone := w.register(c, nil)
	busy := w.register(c, nil)
	c.drop()
	var tries atomic.Int32
	w.service.Answer(func(n pushtest.Notification, rw http.ResponseWriter) {
		switch {
		case strings.HasSuffix(gone.Endpoint, n.Path):
			rw.WriteHeader(http.StatusNotFound)
		case tries.Add(1) < 3:
			rw.WriteHeader(http.StatusTooManyRequests)
		default:
			rw.WriteHeader(http.StatusCreated)
		}
	})
	w.post("d", say("one"))
	for range 4 {
		w.notified()
	}
	until(t, "the registration to go", func() bool { return len(value[[][]byte](t)(w.store.Notices().Endpoints(ctx, 1))) == 1 })
	w.post("d", say("two"))
	if n := w.notified(); !strings.HasSuffix(busy.Endpoint, n.raw.Path) {
		t.Errorf("%s was told", n.raw.Path)
	}
	w.silent()
}

// A device whose access is taken away loses its registrations, and so does one whose browser became
// another device.
func TestPushRegistrationsGo(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, unhurried)
	left := func(n int64) int { return len(value[[][]byte](t)(w.store.Notices().Endpoints(ctx, n))) }
	w.away("d", nil)
	ok(t, w.hub.Owner().Unbind(ctx, "d"))
	if left(1) != 0 {
		t.Error("an unbound device is still registered")
	}
	w.away("d", nil)
	w.post("d", say("one"))
	w.notified()
	w.post("d", say("two"))
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	if left(1) != 0 || len(value[[]string](t)(w.store.Notices().Due(ctx))) != 0 {
		t.Error("a revoked device is still registered")
	}
	first, second := w.connect("e", withUser("anna")), w.connect("f", withUser("anna"))
	sub := w.register(first, nil)
	if r := second.call("push.register", registration(sub, nil)); r.Err != nil {
		t.Fatal(show(r))
	}
	first.sync()
	if left(2) != 0 || left(3) != 1 {
		t.Errorf("%d and %d registrations of one browser", left(2), left(3))
	}
	w.silent()
}

// actionWorld is a world with a card whose options a notification can choose, and their tokens.
func actionWorld(t *testing.T) (w *pushWorld, tokens map[string]string) {
	w = newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("a key of these tests") })
	w.away("d", map[string]any{"content": true})
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	n := w.notified()
	tokens = map[string]string{}
	for _, a := range n.Actions {
		tokens[a.ID] = a.Token
		if a.Label == "" {
			t.Errorf("action %+v", a)
		}
	}
	if len(tokens) != 2 {
		t.Fatalf("%s", n.raw.Body)
	}
	return w, tokens
}

func TestPushAction(t *testing.T) {
	t.Parallel()
	w, tokens := actionWorld(t)
	for _, forged := range []string{"", ".", "x.y", tokens["once"] + "x", strings.Replace(tokens["once"], ".", "", 1), strings.Split(tokens["once"], ".")[0] + "." + strings.Split(tokens["deny"], ".")[1]} {
		if o, err := w.hub.Act(ctx, forged); !errors.Is(err, notify.ErrForged) {
			t.Errorf("%q: %+v %v", forged, o, err)
		}
	}
	w.idle()
	if o, err := w.hub.Act(ctx, tokens["once"]); err != nil || o != (hub.ActionOutcome{OptionID: "once"}) {
		t.Fatalf("%+v %v", o, err)
	}
	if a := w.told(); a.card.ID != "c1" || a.answer != (agent.Answer{OptionID: "once"}) {
		t.Errorf("the agent was told %+v", a.answer)
	}
	for _, again := range []string{"once", "deny"} {
		if o, err := w.hub.Act(ctx, tokens[again]); err != nil || o != (hub.ActionOutcome{OptionID: "once", Before: true}) {
			t.Errorf("%s again: %+v %v", again, o, err)
		}
	}
	if n := w.notified(); n.Type != "withdraw" {
		t.Errorf("%s", n.raw.Body)
	}
	c := w.connect("d")
	expect[*frame.Prompt](c)
	if d := expect[*frame.PromptDone](c); d.OptionID != "once" || d.Expired {
		t.Errorf("%s", show(d))
	}
	w.idle()
	// After a restart it is known still.
	w.restart()
	if o, err := w.hub.Act(ctx, tokens["deny"]); err != nil || !o.Before || o.OptionID != "once" {
		t.Errorf("after a restart: %+v %v", o, err)
	}
}

func TestPushActionIsRefused(t *testing.T) {
	t.Parallel()
	w, tokens := actionWorld(t)
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	if o, err := w.hub.Act(ctx, tokens["once"]); !errors.Is(err, notify.ErrRejected) {
		t.Errorf("of a revoked device: %+v %v", o, err)
	}
	w.idle()
}

// Tokens are good until the card expires.
func TestPushActionExpires(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	w.away("d", map[string]any{"content": true})
	card := approvalCard("c1", 0)
	card.Life = 4 * time.Second
	w.post("d", agent.Ask{Card: card})
	token := w.notified().Actions[0].Token
	if a := w.told(); !a.answer.Expired {
		t.Fatalf("told %+v", a.answer)
	}
	if o, err := w.hub.Act(ctx, token); !errors.Is(err, notify.ErrExpired) && (err != nil || !o.Expired || o.OptionID != "deny") {
		t.Errorf("%+v %v", o, err)
	}
	until(t, "the token to expire", func() bool { _, err := w.hub.Act(ctx, token); return errors.Is(err, notify.ErrExpired) })
}

// A token of one device is no good for the card of another, whoever signed it.
func TestPushActionOfAnotherDevice(t *testing.T) {
	t.Parallel()
	w, _ := actionWorld(t)
	w.connect("e")
	w.post("d", agent.Ask{Card: approvalCard("c2", 0)})
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("e", "c2", "once")); !errors.Is(err, notify.ErrRejected) {
		t.Errorf("another device's card: %v", err)
	}
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("nobody", "c2", "once")); !errors.Is(err, notify.ErrRejected) {
		t.Errorf("an unknown device: %v", err)
	}
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("d", "none", "once")); !errors.Is(err, notify.ErrExpired) {
		t.Errorf("an unknown card: %v", err)
	}
	w.idle()
	if o, err := w.hub.Act(ctx, w.hub.ActionToken("d", "c2", "once")); err != nil || o.OptionID != "once" {
		t.Errorf("its own: %+v %v", o, err)
	}
}

// A member of a shared conversation answers as it would by a frame: all are told who it was.
func TestPushActionOfAMember(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	phone, tablet := w.share()
	w.register(tablet, map[string]any{"content": true})
	tablet.drop()
	w.post("phone", agent.Ask{Card: approvalCard("c1", 0)})
	token := w.notified().Actions[1].Token
	if o, err := w.hub.Act(ctx, token); err != nil || o != (hub.ActionOutcome{OptionID: "deny"}) {
		t.Fatalf("%+v %v", o, err)
	}
	if d := find[*frame.PromptDone](phone, nil); d.OptionID != "deny" || d.By == nil || d.By.ID != "tablet" {
		t.Errorf("%s", show(d))
	}
	if o, err := w.hub.Act(ctx, token); err != nil || !o.Before {
		t.Errorf("again: %+v %v", o, err)
	}
}

// Without the owner's consent there are no tokens, and one that was signed before is worth nothing.
func TestPushActionsAreOffByDefault(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", map[string]any{"content": true})
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	if n := w.notified(); n.Actions != nil {
		t.Errorf("%s", n.raw.Body)
	}
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("d", "c1", "once")); !errors.Is(err, notify.ErrForged) {
		t.Errorf("signed with no key: %v", err)
	}
}

// Nothing that is said to a device without content holds words, and a target without keys gets no
// tokens.
func TestPushActionsAreContent(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	w.away("d", nil)
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	if n := w.notified(); n.raw.Body != `{"type":"card","id":"c1","ids":["c1"],"count":1}` {
		t.Errorf("%s", n.raw.Body)
	}
}
