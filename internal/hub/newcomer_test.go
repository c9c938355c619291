package hub_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/store"
)

// waiting is strict, and new devices wait for a minute before they may answer.
func waiting(o *hub.Options) {
	strict(o)
	o.AnswerWait, o.PushActions = 0, []byte("key")
}

// brief is strict, and new devices wait for a moment.
func brief(o *hub.Options) {
	strict(o)
	o.AnswerWait = 300 * time.Millisecond
}

// tooNew expects that an answer comes too early.
func (c *client) tooNew(ref string) {
	c.w.t.Helper()
	e := find[*frame.Error](c, nil)
	if e.Code != frame.Forbidden || e.Ref != ref || e.RetryAfter < 1 || e.RetryAfter > 60 || !strings.Contains(e.Message, "new") {
		c.w.t.Errorf("device %s is answered %s, want that it is too new for %s", c.id, show(e), ref)
	}
}

// A new device of a user may not answer cards, whatever way it tries; a first device may, and so may a trusted one.
func TestNewDeviceMayNotAnswer(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, waiting)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"))
	if k := phone.Ready.Capabilities; !k.Prompt || k.AnswersIn != 0 || !k.AnswersAt.IsZero() {
		t.Errorf("the first device of a user is told %+v", k)
	}
	tab := w.pair("tab", access.PairingCode{User: "anna"})
	k := tab.Ready.Capabilities
	if k.Prompt || k.AnswersIn < 50 || k.AnswersIn > 60 || time.Until(k.AnswersAt) < 50*time.Second || time.Until(k.AnswersAt) > 62*time.Second {
		t.Errorf("a new device is told %+v", k)
	}
	w.post("tab", agent.Ask{Card: approvalCard("c1", 0)})
	expect[*frame.Prompt](tab)
	tab.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	tab.tooNew("a1")
	for i, words := range []string{"/approve", "/APPROVE always", " /deny", "/always@hermes", "/cancel now"} {
		id := fmt.Sprint("w", i)
		tab.send(&frame.Text{ID: id, Text: words})
		tab.tooNew(id)
	}
	tab.send(&frame.Audio{ID: "v", Format: "ogg", Data: []byte("OggS"), Text: "/approve"})
	tab.tooNew("v")
	tab.send(&frame.Media{ID: "f", Kind: "document", Filename: "a", Data: []byte("x"), Parts: 1, Caption: "/approve"})
	tab.tooNew("f")
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("tab", "c1", "once")); !errors.Is(err, notify.ErrTooNew) {
		t.Errorf("by a button: %v", err)
	}
	tab.text("m1", "but I may talk")
	w.register(tab, map[string]any{"content": true})
	tab.drop()
	w.post("tab", agent.Ask{Card: approvalCard("c2", 0)})
	if n := w.notified(); len(n.Actions) != 0 {
		t.Errorf("a notification has buttons: %s", n.raw.Body)
	}
	w.restart() // the wait is stored
	tab = w.connect("tab", own(tab))
	tab.send(&frame.Answer{ID: "a2", PromptID: "c1", OptionID: "once"})
	tab.tooNew("a2")
	for _, a := range []string{"c1", "c2"} {
		if row, found, err := w.store.Card(ctx, a); err != nil || !found || row.State != store.CardOpen {
			t.Errorf("card %s is %+v (%v)", a, row, err)
		}
	}
	desk := w.pair("desk", access.PairingCode{User: "anna", Trusted: true})
	if !desk.Ready.Capabilities.Prompt {
		t.Errorf("a trusted device is told %+v", desk.Ready.Capabilities)
	}
	w.post("desk", agent.Ask{Card: approvalCard("c3", 0)})
	desk.send(&frame.Answer{PromptID: "c3", OptionID: "once"})
	if d := find[*frame.PromptDone](desk, nil); d.OptionID != "once" {
		t.Errorf("got %s", show(d))
	}
	// An app token lets a device in under a user who has others: the same.
	w.connect("app-1", withUser("bert"))
	value[any](t)(nil, func() error { _, err := w.pairing.ApproveUser("bert", ""); return err }())
	if k := w.connect("app-2", withUser("bert")).Ready.Capabilities; k.Prompt || k.AnswersIn == 0 {
		t.Errorf("a second device with an app token is told %+v", k)
	}
	if k := w.connect("app-1", withUser("bert")).Ready.Capabilities; !k.Prompt {
		t.Errorf("the first one is told %+v", k)
	}
}

// Who has only revoked devices has nobody who could object.
func TestDeviceAfterRevokedOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	w.pair("lost", access.PairingCode{}, withUser("anna"))
	ok(t, w.hub.Owner().Revoke(ctx, "lost"))
	if k := w.pair("found", access.PairingCode{User: "anna"}).Ready.Capabilities; !k.Prompt {
		t.Errorf("told %+v", k)
	}
}

// When the time is over the device is told, and may answer.
func TestNewDeviceMayAnswerLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brief)
	w.pair("phone", access.PairingCode{}, withUser("anna"))
	tab := w.pair("tab", access.PairingCode{User: "anna"})
	if tab.Ready.Capabilities.AnswersIn != 1 { // rounded up
		t.Errorf("told %+v", tab.Ready.Capabilities)
	}
	k := find[*frame.CapabilitiesChanged](tab, nil).Capabilities
	if !k.Prompt || k.AnswersIn != 0 || !k.AnswersAt.IsZero() {
		t.Errorf("told %+v", k)
	}
	w.post("tab", agent.Ask{Card: approvalCard("c1", 0)})
	tab.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	if d := find[*frame.PromptDone](tab, nil); d.OptionID != "once" {
		t.Errorf("got %s", show(d))
	}
	if d := w.info("tab"); d.AnswersAt != nil {
		t.Errorf("listed %+v", d)
	}
}

// A device that joins a conversation waits, and so does one that is given the right to answer. Other rights make no difference to
// cards; a user's only device waits for nobody.
func TestJoiningAndRightsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"))
	w.rights("phone", off("answer"))
	w.rights("phone", map[string]bool{"answer": true})
	find(phone, func(k *frame.CapabilitiesChanged) bool { return k.Capabilities.Prompt && k.Capabilities.AnswersIn == 0 })
	tab := w.pair("tab", access.PairingCode{User: "anna", Trusted: true})
	w.rights("tab", off("call"))
	w.rights("tab", map[string]bool{"call": true})
	find(tab, func(k *frame.CapabilitiesChanged) bool { return k.Capabilities.Prompt })
	w.rights("tab", off("answer"))
	w.rights("tab", map[string]bool{"answer": true})
	find(tab, func(k *frame.CapabilitiesChanged) bool {
		return k.Capabilities.AnswersIn > 50 && !k.Capabilities.Prompt
	})
	w.post("tab", agent.Ask{Card: approvalCard("c1", 0)})
	tab.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	tab.tooNew("a1")

	desk := w.pair("desk", access.PairingCode{User: "anna", Trusted: true})
	ok(t, w.hub.Owner().Join(ctx, "desk", "phone"))
	desk = w.connect("desk", own(desk))
	if k := desk.Ready.Capabilities; k.Prompt || k.AnswersIn < 50 {
		t.Errorf("a device that joined is told %+v", k)
	}
	w.post("phone", agent.Ask{Card: approvalCard("c2", 0)})
	desk.send(&frame.Answer{ID: "a2", PromptID: "c2", OptionID: "once"})
	desk.tooNew("a2")
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("desk", "c2", "once")); !errors.Is(err, notify.ErrRejected) && !errors.Is(err, notify.ErrTooNew) {
		t.Errorf("by a button: %v", err)
	}
	phone.send(&frame.Answer{ID: "a3", PromptID: "c2", OptionID: "deny"})
	if d := find[*frame.PromptDone](phone, nil); d.OptionID != "deny" || d.By == nil || d.By.ID != "phone" {
		t.Errorf("got %s", show(d))
	}
}

// The other devices of the user are told at once where their apps show it, also those that sleep, and nobody else.
func TestNewDeviceIsAnnounced(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"), withNotices())
	old := w.pair("old", access.PairingCode{User: "anna"}) // an app that knows nothing of notices
	first := expect[*frame.Notice](phone)
	sleepy := w.pair("sleepy", access.PairingCode{User: "anna"}, withNotices(), withName("Sleepy"))
	expect[*frame.Notice](phone)
	sleepy.drop()
	other := w.pair("other", access.PairingCode{}, withUser("bert"), withNotices())
	tab := w.pair("tab", access.PairingCode{User: "anna"}, withNotices(), withName("Tablet"))

	n := expect[*frame.Notice](phone)
	if n.Kind != frame.DeviceAdded || n.Device.ID != "tab" || n.Device.Name != "Tablet" || n.User != "anna" || n.ID == "" || !n.Revocable || n.Seq <= first.Seq || time.Since(n.At) > patience {
		t.Errorf("the phone got %s", show(n))
	}
	for _, c := range []*client{old, other, tab} {
		c.quiet()
	}
	w = w.crash()
	if r := w.connect("old", own(old)).Ready.Resume; r.To >= r.From {
		t.Errorf("an old app has %+v to come", r)
	}
	sleepy = w.connect("sleepy", own(sleepy), withNotices())
	if n := expect[*frame.Notice](sleepy); n.Device.ID != "tab" || !n.Revocable {
		t.Errorf("who slept got %s", show(n))
	}
	// An app that showed notices and is replaced by an older one does not notice.
	sleepy.drop()
	w.pair("desk", access.PairingCode{User: "anna"})
	until(t, "the notice to wait", func() bool { return w.info("sleepy").Waiting == 2 })
	again := w.connect("sleepy", own(sleepy))
	again.quiet()
	ok(t, w.hub.Owner().Join(ctx, "desk", "phone"))
	w.rights("desk", off("write"))
	w.rights("desk", map[string]bool{"write": true})
	phone = w.connect("phone", own(phone), withNotices(), withResume(phone.Ready.Resume.Epoch, n.Seq))
	var kinds []string
	for _, f := range phone.sync() {
		if n, is := f.(*frame.Notice); is {
			kinds = append(kinds, n.Kind+" "+n.Device.ID+" "+n.Conversation+strings.Join(n.Rights, ","))
		}
	}
	if want := []string{"device_added desk ", "device_joined desk phone", "rights_changed desk write"}; !slices.Equal(kinds, want) {
		t.Errorf("the phone got %q, want %q", kinds, want)
	}
}

// A device revokes those that came after it, and only those.
func TestRevokeFromADevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brief)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"), withNotices())
	tab := w.pair("tab", access.PairingCode{User: "anna"}, withNotices())
	last := w.pair("last", access.PairingCode{User: "anna"}, withNotices())
	w.pair("other", access.PairingCode{}, withUser("bert"))
	refused := func(c *client, params, code string) {
		t.Helper()
		if r := c.call("devices.revoke", params); r.Err == nil || r.Err.Code != code {
			t.Errorf("%s revokes %s: %s, want %s", c.id, params, show(r), code)
		}
	}
	find(last, func(k *frame.CapabilitiesChanged) bool { return k.Capabilities.Prompt }) // all may answer now
	for _, c := range []*client{tab, last} {
		refused(c, `{"id":"phone"}`, "forbidden")
		refused(c, `{"id":"other"}`, "not_found")
		refused(c, `{"id":"nobody"}`, "not_found")
		refused(c, `{"id":"`+c.id+`"}`, "forbidden")
		refused(c, `{"id":7}`, "bad_params")
		refused(c, `{}`, "not_found")
	}
	refused(last, `{"id":"tab"}`, "forbidden")
	w.rights("phone", off("answer"))
	if k := find[*frame.CapabilitiesChanged](phone, nil).Capabilities; slices.Contains(k.Call, "devices.revoke") {
		t.Errorf("offered %q", k.Call)
	}
	refused(phone, `{"id":"last"}`, "forbidden")
	w.rights("phone", map[string]bool{"answer": true})
	refused(phone, `{"id":"last"}`, "forbidden") // it was given the right just now
	find(phone, func(k *frame.CapabilitiesChanged) bool { return k.Capabilities.Prompt })
	for range 2 {
		if r := phone.call("devices.revoke", `{"id":"last"}`); r.Err != nil {
			t.Fatalf("the phone revokes the last one: %s", show(r))
		}
	}
	if code := last.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	w.open("last", own(last)).refusal()
	if list := w.audited("device.revoked"); len(list) != 1 || list[0].Actor != "device:phone" || list[0].Origin != "127.0.0.1" || list[0].Subject != "last" {
		t.Errorf("recorded %+v", list)
	}
	tab.send(&frame.Text{ID: "m1", Text: "still here"})
	find[*frame.Accepted](tab, nil)
	// What tells of it says that nothing is to be done any more.
	again := w.connect("tab", own(tab), withNotices(), withResume(tab.Ready.Resume.Epoch, 0))
	if n := find(again, func(n *frame.Notice) bool { return n.Device.ID == "last" }); n.Revocable {
		t.Errorf("got %s", show(n))
	}
}

// An old device that goes over to a user is the newest of that user's.
func TestADeviceThatChangesItsUserIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	value[any](t)(nil, func() error { _, err := w.pairing.ApproveUser("anna", ""); return err }())
	w.connect("evil", withUser("nobody-yet")) // there first
	phone := w.connect("phone", withUser("anna"), withNotices())
	evil := w.connect("evil", withUser("anna"))
	if k := evil.Ready.Capabilities; k.Prompt || !evil.Ready.Approved {
		t.Errorf("it gets %s", show(evil.Ready))
	}
	if r := evil.call("devices.revoke", `{"id":"phone"}`); r.Err == nil {
		t.Error("it revokes the phone")
	}
	if n := expect[*frame.Notice](phone); n.Device.ID != "evil" || !n.Revocable {
		t.Errorf("the phone got %s", show(n))
	}
	for range 3 { // to and fro
		w.connect("evil", withUser(fmt.Sprint("nobody-", agent.NewID())))
		evil = w.connect("evil", withUser("anna"))
		if k := evil.Ready.Capabilities; k.Prompt || k.AnswersIn < 50 {
			t.Errorf("it is told %+v", k)
		}
		evil.drop()
		w.restart()
	}
	phone = w.connect("phone", withUser("anna"))
	if r := phone.call("devices.revoke", `{"id":"evil"}`); r.Err != nil {
		t.Errorf("the phone may not revoke it: %s", show(r))
	}
}

// Devices that sleep are notified, at once, with words only where they asked for them.
func TestPushOfANewDevice(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, waiting)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"), withNotices())
	w.register(phone, map[string]any{"content": true})
	phone.drop()
	w.pair("tab", access.PairingCode{User: "anna"}, withName("Tab\u202elet"))
	n := w.notified()
	if n.Type != "notice" || n.Count != 1 || n.Title != "Hermes" || !strings.Contains(n.Body, "access") || !strings.Contains(n.raw.Body, `"kind":"device_added"`) || !strings.Contains(n.raw.Body, `"device":"Tab`) {
		t.Errorf("notified of %s", n.raw.Body)
	}
	phone = w.connect("phone", own(phone), withNotices())
	if f := expect[*frame.Notice](phone); f.ID != n.ID {
		t.Errorf("got %s", show(f))
	}
	phone.send(&frame.Ack{Seq: phone.Ready.Resume.To})
	if n := w.notified(); n.Type != "withdraw" {
		t.Errorf("then %s", n.raw.Body)
	}
	w.register(phone, nil)
	phone.drop()
	w.pair("desk", access.PairingCode{User: "anna"}, withName("Desk"))
	for range 2 {
		if n := w.notified(); n.Type != "notice" || strings.Contains(n.raw.Body, "Desk") != (n.Title != "") {
			t.Errorf("notified of %s", n.raw.Body)
		}
	}
}

// A device answers the card of a conversation while it joins that, over and over: before it has joined the card is not its own, and
// after that it is too new.
func TestJoinsWhileItAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"))
	tab := w.pair("tab", access.PairingCode{User: "anna", Trusted: true})
	for round := range 15 {
		card := fmt.Sprint("c", round)
		w.post("phone", agent.Ask{Card: approvalCard(card, 0)})
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 5 {
				if tab.write(&frame.Answer{ID: fmt.Sprint(card, "-", i), PromptID: card, OptionID: "once"}) != nil {
					return // joining ends the connection
				}
			}
		})
		wg.Go(func() { _, _ = w.hub.Act(ctx, w.hub.ActionToken("tab", card, "once")) })
		wg.Go(func() { ok(t, w.hub.Owner().Join(ctx, "tab", "phone")) })
		wg.Wait()
		tab = w.connect("tab", own(tab))
		tab.send(&frame.Answer{ID: card, PromptID: card, OptionID: "once"})
		tab.tooNew(card)
		ok(t, w.hub.Owner().Leave(ctx, "tab"))
		tab = w.connect("tab", own(tab))
		phone.send(&frame.Answer{ID: card, PromptID: card, OptionID: "deny"})
		if d := find(phone, func(d *frame.PromptDone) bool { return d.PromptID == card }); d.OptionID != "deny" {
			t.Fatalf("round %d: the card was decided by the new device: %s", round, show(d))
		}
	}
}

// The transaction that decides a card knows when a device may answer, whatever the session believes.
func TestTransactionKnowsNewDevices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, waiting)
	w.pair("phone", access.PairingCode{}, withUser("anna"))
	tab := w.pair("tab", access.PairingCode{User: "anna", Trusted: true})
	w.post("tab", agent.Ask{Card: approvalCard("c1", 0)})
	d := value[*store.Device](t)(w.store.Device(ctx, "tab"))
	ok(t, w.store.Do(func(tx *store.Tx) error { return tx.WaitToAnswer(d.N, time.Now().Add(time.Hour)) })) // behind its back
	tab.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	tab.tooNew("a1")
	if _, err := w.hub.Act(ctx, w.hub.ActionToken("tab", "c1", "once")); !errors.Is(err, notify.ErrTooNew) {
		t.Errorf("by a button: %v", err)
	}
	if !w.hub.StoreFailedAt().IsZero() {
		t.Error("that counts as a failure of the store")
	}
	ok(t, w.store.Do(func(tx *store.Tx) error { return tx.ShortenWait(d.N, time.Now()) }))
	tab.send(&frame.Answer{ID: "a2", PromptID: "c1", OptionID: "deny"}) // the card stayed open
	if d := find[*frame.PromptDone](tab, nil); d.OptionID != "deny" {
		t.Errorf("got %s", show(d))
	}
}

// A clock that was set back does not make the wait longer than it is.
func TestWaitAfterAClockWasSetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brief)
	w.pair("phone", access.PairingCode{}, withUser("anna"))
	tab := w.pair("tab", access.PairingCode{User: "anna"})
	d := value[*store.Device](t)(w.store.Device(ctx, "tab"))
	tab.drop()
	ok(t, w.store.Do(func(tx *store.Tx) error { return tx.WaitToAnswer(d.N, time.Now().Add(24*time.Hour)) }))
	w.restart()
	tab = w.connect("tab", own(tab))
	if !tab.Ready.Capabilities.Prompt {
		find(tab, func(k *frame.CapabilitiesChanged) bool { return k.Capabilities.Prompt })
	}
	w.post("tab", agent.Ask{Card: approvalCard("c1", 0)})
	tab.send(&frame.Answer{PromptID: "c1", OptionID: "once"})
	if d := find[*frame.PromptDone](tab, nil); d.OptionID != "once" {
		t.Errorf("got %s", show(d))
	}
}

// Whatever the order in which devices are paired, let in, joined, revoked and given rights, one that must wait decides no card. The
// wait is so long here that it never ends.
func TestNoOrderLetsANewDeviceDecide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, func(o *hub.Options) { unguarded(o); o.AnswerWait = time.Hour })
		defer w.close()
		m := &newcomers{w: w, devices: map[string]*newcomer{}}
		t.Repeat(map[string]func(*rapid.T){
			"pair": m.pair, "app": m.app, "join": m.join, "leave": m.leave, "rights": m.rights, "revoke": m.revoke, "unbind": m.unbind,
			"restart": func(*rapid.T) { m.restart() }, "answer": m.answer, "answer again": m.answer,
		})
	})
}

// newcomers is the model of devices of two users, of which some must wait.
type newcomers struct {
	w       *world
	devices map[string]*newcomer
	cards   int
}

type newcomer struct {
	user    string
	token   string // of its own, or the app's
	waits   bool
	revoked bool
	answers bool
	joined  string
}

var newcomerIDs = []string{"a", "b", "c", "d"}

// enter is what becomes of a device that is new for a user.
func (m *newcomers) enter(id, user, token string, trusted bool) {
	d := m.devices[id]
	if d == nil {
		d = &newcomer{answers: true}
		m.devices[id] = d
	}
	m.part(id)
	d.user, d.token, d.waits = user, token, m.others(id, user) && !trusted
}

// others reports whether a user has another device that could object.
func (m *newcomers) others(id, user string) bool {
	for other, d := range m.devices {
		if other != id && d.user == user && !d.revoked {
			return true
		}
	}
	return false
}

// part ends what a device shares.
func (m *newcomers) part(id string) {
	for other, d := range m.devices {
		if other == id || d.joined == id {
			d.joined = ""
		}
	}
}

func (m *newcomers) pair(t *rapid.T) {
	id, user, trusted := rapid.SampledFrom(newcomerIDs).Draw(t, "id"), rapid.SampledFrom([]string{"anna", "bert"}).Draw(t, "user"), rapid.Bool().Draw(t, "trusted")
	code, _, _, err := m.w.hub.Owner().Invite(ctx, access.PairingCode{User: user, Trusted: trusted}, time.Minute)
	if err != nil {
		return
	}
	c := m.w.open(id, withPair(code))
	f, err := c.any()
	ok(m.w.t, err)
	if r, in := f.(*frame.Ready); in {
		m.enter(id, user, r.Token, trusted)
	}
}

func (m *newcomers) app(t *rapid.T) {
	id, user := rapid.SampledFrom(newcomerIDs).Draw(t, "id"), rapid.SampledFrom([]string{"anna", "bert"}).Draw(t, "user")
	c := m.w.open(id, withUser(user))
	f, err := c.any()
	ok(m.w.t, err)
	if _, in := f.(*frame.Ready); !in {
		return
	}
	if d := m.devices[id]; d == nil || d.user != user {
		m.enter(id, user, token, false)
	}
}

func (m *newcomers) join(t *rapid.T) {
	a, b := rapid.SampledFrom(newcomerIDs).Draw(t, "id"), rapid.SampledFrom(newcomerIDs).Draw(t, "conversation")
	if m.w.hub.Owner().Join(ctx, a, b) == nil {
		m.devices[a].joined, m.devices[a].waits = b, true
	}
}

func (m *newcomers) leave(t *rapid.T) {
	if id := rapid.SampledFrom(newcomerIDs).Draw(t, "id"); m.w.hub.Owner().Leave(ctx, id) == nil {
		m.devices[id].joined = ""
	}
}

func (m *newcomers) rights(t *rapid.T) {
	id, on := rapid.SampledFrom(newcomerIDs).Draw(t, "id"), rapid.Bool().Draw(t, "answer")
	d := m.devices[id]
	if d == nil {
		return
	}
	if _, err := m.w.hub.Owner().SetRights(ctx, id, map[string]bool{"answer": on}); err != nil {
		m.w.t.Fatalf("%v", err)
	}
	if on && !d.answers && d.user != "" && m.others(id, d.user) {
		d.waits = true
	}
	d.answers = on
}

func (m *newcomers) revoke(t *rapid.T) {
	if id := rapid.SampledFrom(newcomerIDs).Draw(t, "id"); m.w.hub.Owner().Revoke(ctx, id) == nil {
		m.part(id)
		m.devices[id].revoked = true
	}
}

func (m *newcomers) unbind(t *rapid.T) {
	if id := rapid.SampledFrom(newcomerIDs).Draw(t, "id"); m.w.hub.Owner().Unbind(ctx, id) == nil {
		m.part(id)
		m.devices[id].revoked, m.devices[id].user = false, ""
	}
}

func (m *newcomers) restart() { m.w.restart() }

// answer has one device try to decide a card of another's conversation, by every way there is.
func (m *newcomers) answer(t *rapid.T) {
	id, of := rapid.SampledFrom(newcomerIDs).Draw(t, "id"), rapid.SampledFrom(newcomerIDs).Draw(t, "of")
	d, lead := m.devices[id], m.devices[of]
	if d == nil || lead == nil {
		return
	}
	m.cards++
	card := fmt.Sprint("card-", m.cards)
	if m.w.try(of, agent.Ask{Card: approvalCard(card, 0)}) != nil {
		return // nobody is there who could see it
	}
	if c := m.w.open(id, withToken(d.token), withUser(d.user)); d.token != "" {
		if f, err := c.any(); err == nil {
			if _, in := f.(*frame.Ready); in {
				c.send(&frame.Answer{ID: card, PromptID: card, OptionID: "once"})
				c.send(&frame.Call{ID: "sync", Method: "none", Params: []byte("{}")})
				for {
					f, err := c.any()
					if err != nil {
						break
					}
					if _, done := f.(*frame.Result); done {
						break
					}
					if e, refused := f.(*frame.Error); refused && e.Ref == "sync" {
						break
					}
				}
			}
		}
	}
	_, _ = m.w.hub.Act(ctx, m.w.hub.ActionToken(id, card, "once"))
	m.w.hub.Sync(of)
	row, found, err := m.w.store.Card(ctx, card)
	ok(m.w.t, err)
	if !found {
		m.w.t.Fatalf("card %s is gone", card)
	}
	if decided := row.OptionID == "once"; decided && (d.waits || !d.answers || d.revoked || d.user == "" || id != of && d.joined != of) {
		m.w.t.Fatalf("device %s (%+v) decided a card of %s", id, *d, of)
	} else if !decided && id == of && d.joined == "" && !d.waits && d.answers && !d.revoked && d.user != "" && m.w.pairing.Approved(d.user) {
		m.w.t.Fatalf("device %s (%+v) could not decide its own card", id, *d)
	}
}
