package hub_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/push"
	"hermes-mobile/internal/push/pushtest"
	"hermes-mobile/internal/wsconn"
)

// pushWait is the time for a device to come back where nothing has to be done within it; unhurried is for where it has.
const pushWait = 300 * time.Millisecond

func unhurried(o *hub.Options) { o.PushWait = 3 * time.Second }

// pushWorld is a world whose devices can be notified by a push service on this machine.
type pushWorld struct {
	*world
	service   *pushtest.Service
	endpoints map[string]string // by device, the newest
}

func newPushWorld(t *testing.T, change func(*hub.Options)) *pushWorld {
	t.Helper()
	service := pushtest.New()
	t.Cleanup(service.Close)
	keys := value[*push.Keys](t)(push.OpenKeys(t.TempDir()))
	w := newWorld(t, func(o *hub.Options) {
		sender := push.NewSender(push.Options{Keys: keys, Subject: "https://agent.example.com", Hosts: []string{pushtest.Host}, Wait: time.Millisecond})
		t.Cleanup(sender.Close)
		o.Push, o.PushWait = sender, pushWait
		if change != nil {
			change(o)
		}
	})
	return &pushWorld{w, service, map[string]string{}}
}

// notification is what an app reads in one.
type notification struct {
	Type    string
	ID      string
	IDs     []string
	Count   int
	Title   string
	Body    string
	Actions []struct{ ID, Label, Token string }

	raw pushtest.Notification
}

// notified is the next notification.
func (w *pushWorld) notified() (n notification) {
	w.t.Helper()
	n.raw = receive(w.t, w.service.Got, "a notification")
	ok(w.t, n.raw.Err)
	if err := json.Unmarshal([]byte(n.raw.Body), &n); err != nil {
		w.t.Fatalf("%q: %v", n.raw.Body, err)
	}
	return n
}

// notifiedOf takes the notification of so many things. On a busy machine there may have been one of the first of them alone.
func (w *pushWorld) notifiedOf(things int) (n notification) {
	w.t.Helper()
	for len(n.IDs) < things {
		n = w.notified()
	}
	return n
}

// silent fails if there is a notification that the test did not ask for, after all that was due was done: what the hub does
// for this device comes before what it does for another one that is notified later.
func (w *pushWorld) silent() {
	w.t.Helper()
	probe := fmt.Sprint("probe-", agent.NewID())
	c := w.connect(probe)
	w.register(c, nil)
	c.drop()
	w.post(probe, say("probe"))
	if n := w.notified(); n.raw.Path != w.endpointOf(probe) {
		w.t.Fatalf("%s of %v came unasked", n.raw.Body, n.IDs)
	}
	ok(w.t, w.hub.Owner().Revoke(ctx, probe)) // so that nothing else comes of it
}

// endpointOf is the path of the endpoint that a device registered last.
func (w *pushWorld) endpointOf(device string) string {
	at := w.endpoints[device]
	return at[strings.Index(at, "/endpoint"):]
}

// call makes a call and returns its answer.
func (c *client) call(method, params string) *frame.Result {
	c.w.t.Helper()
	c.calls++
	id := fmt.Sprint("call-", c.calls)
	c.send(&frame.Call{ID: id, Method: method, Params: []byte(params)})
	return find(c, func(r *frame.Result) bool { return r.ID == id })
}

// register makes a new endpoint with keys and registers it; more are further parameters.
func (w *pushWorld) register(c *client, more map[string]any) *pushtest.Subscription {
	w.t.Helper()
	sub := w.service.Subscribe()
	w.endpoints[c.id] = sub.Endpoint
	if r := c.call("push.register", registration(sub, more)); r.Err != nil || string(r.Result) != `{"ok":true}` {
		w.t.Fatalf("push.register: %s", show(r))
	}
	return sub
}

func registration(sub *pushtest.Subscription, more map[string]any) string {
	p := map[string]any{"kind": "webpush", "endpoint": sub.Endpoint, "keys": map[string]string{"p256dh": sub.P256dh, "auth": sub.Auth}}
	for k, v := range more {
		p[k] = v
	}
	text, _ := json.Marshal(p)
	return string(text)
}

func say(text string) agent.Say { return agent.Say{ID: agent.NewID(), Text: text, Final: true} }

// away registers a device and has it leave.
func (w *pushWorld) away(id string, more map[string]any, opts ...option) {
	w.t.Helper()
	c := w.connect(id, opts...)
	w.register(c, more)
	c.drop()
}

func TestPushTellsADeviceThatIsAway(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	c := w.connect("d")
	if caps := c.Ready.Capabilities; !caps.Push || !slices.Equal(caps.Call, []string{"devices.list", "devices.revoke", "push.key", "push.register", "push.unregister", "push.test"}) {
		t.Errorf("capabilities %+v", caps)
	}
	w.register(c, nil)
	w.post("d", say("while it is there"))
	c.send(&frame.Ack{Seq: c.message().Seq})
	c.drop()
	m := say("secret words")
	w.post("d", m)
	n := w.notified()
	if n.Type != "message" || !slices.Equal(n.IDs, []string{m.ID}) || n.Count != 1 || n.Title != "" || strings.Contains(n.raw.Body, "secret") {
		t.Errorf("%s", n.raw.Body)
	}
	if h := n.raw.Header; h.Get("Urgency") != "normal" || len(h.Get("Topic")) == 0 || len(h.Get("Topic")) > 32 || len(h.Get("TTL")) != len("604799") {
		t.Errorf("header %v", h)
	}
	// A newer one replaces an older one, so it tells of both.
	second := say("more")
	w.post("d", second)
	if n2 := w.notified(); n2.Count != 2 || !slices.Equal(n2.IDs, []string{m.ID, second.ID}) || n2.raw.Header.Get("Topic") != n.raw.Header.Get("Topic") {
		t.Errorf("%s", n2.raw.Body)
	}
	w.silent()
}

func TestPushCoalesces(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, unhurried)
	w.away("d", map[string]any{"content": true})
	w.post("d", say("message 0"))
	w.post("d", say("message 1"), say("message 2"))
	if n := w.notified(); n.Count != 3 || len(n.IDs) != 3 || n.ID != n.IDs[2] || n.Body != "message 2" || n.Title != "Hermes" {
		t.Errorf("%s", n.raw.Body)
	}
	w.silent()
}

// A device that comes in time is not told, and one that goes again before it got everything is.
func TestPushWaitsForTheDevice(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, unhurried)
	w.away("d", nil)
	w.post("d", say("one"))
	c := w.connect("d")
	c.message()
	w.silent()
	c.drop()
	w.silent()
}

// A phone that falls asleep says nothing. What is written to its socket until that is noticed never arrives, and it is told of it.
func TestPushOfWhatWasSentIntoSilence(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.Keeper = wsconn.NewKeeper(4*time.Second, 500*time.Millisecond) })
	w.away("d", nil)
	w.open("d", slow()) // it reads nothing and answers no ping
	until(t, "the device to be connected", func() bool {
		list := value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx))
		return len(list) == 1 && list[0].Connected
	})
	m := say("into the dark")
	w.post("d", m)
	if n := w.notified(); !slices.Equal(n.IDs, []string{m.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
}

// A page that is being closed does not read what is on its way to it, and is told of that. What it acknowledged it has.
func TestPushOfWhatCameAsTheDeviceWent(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.LastMoments = time.Hour })
	c := w.connect("d")
	w.register(c, nil)
	w.post("d", say("read"))
	c.send(&frame.Ack{Seq: c.message().Seq})
	m := say("not read")
	w.post("d", m)
	c.message() // it was written
	c.drop()
	if n := w.notified(); n.Count != 1 || !slices.Equal(n.IDs, []string{m.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.silent()
}

// What a device was told that it may have missed still counts in the next notification, also when nobody remembers that doubt any more:
// the notification replaces the one before.
func TestPushCountsWhatWasToldBefore(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.LastMoments = time.Hour })
	c := w.connect("d")
	w.register(c, nil)
	first, second := say("not read"), say("another one")
	w.post("d", first)
	c.message() // it was written
	c.drop()
	if n := w.notified(); n.Count != 1 || !slices.Equal(n.IDs, []string{first.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.restart()
	w.post("d", second)
	if n := w.notified(); n.Count != 2 || !slices.Equal(n.IDs, []string{first.ID, second.ID}) || n.ID != second.ID {
		t.Errorf("%s", n.raw.Body)
	}
	c = w.connect("d", withResume(c.Ready.Resume.Epoch, 0))
	c.message()
	c.send(&frame.Ack{Seq: c.message().Seq})
	if n := w.notified(); n.Type != "withdraw" || !slices.Equal(n.IDs, []string{first.ID, second.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	c.drop()
	third := say("and one more")
	w.post("d", third)
	if n := w.notified(); n.Count != 1 || !slices.Equal(n.IDs, []string{third.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
}

// Steps, the end of a card and what was said on another device are no news, and neither is what waited before.
func TestPushTellsOfNewsOnly(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	c := w.connect("d")
	c.drop()
	w.post("d", say("before it asked"))
	c = w.connect("d", withResume(c.Ready.Resume.Epoch, 0))
	c.message()
	w.register(c, nil)
	c.drop()
	w.post("d", agent.Say{ID: "step", Text: "not the end"})
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)}, agent.CloseCard{ID: "c1", OptionID: "deny"})
	w.silent()
}

func TestPushQuietHours(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	now := time.Now().UTC()
	hours := func(from, to time.Duration) map[string]any {
		return map[string]any{"quiet": push.Quiet{From: now.Add(from).Format("15:04"), To: now.Add(to).Format("15:04"), TZ: "UTC"}}
	}
	c := w.connect("d")
	w.register(c, hours(-2*time.Hour, 2*time.Hour))
	loud := w.register(c, hours(4*time.Hour, 6*time.Hour))
	c.drop()
	w.post("d", agent.Ask{Card: approvalCard("c1", 0)})
	if n := w.notified(); !strings.HasSuffix(loud.Endpoint, n.raw.Path) {
		t.Errorf("%s was told in its quiet hours", n.raw.Path)
	}
	w.silent()
}

// What was told is not told again by the next life of the server, and what was not is.
func TestPushAfterARestart(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", nil)
	first := say("one")
	w.post("d", first)
	w.notified()
	w.restart()
	w.silent()
	second := say("two")
	w.post("d", second)
	w.restart() // before it was told
	if n := w.notified(); !slices.Equal(n.IDs, []string{first.ID, second.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.silent()
}

// A crash between the note that a device is told and the telling costs the notification, never the message.
func TestPushAfterACrash(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	hold := make(chan struct{})
	w.service.Answer(func(_ pushtest.Notification, rw http.ResponseWriter) {
		<-hold
		rw.WriteHeader(http.StatusServiceUnavailable)
	})
	w.away("d", nil)
	m := say("one")
	w.post("d", m)
	until(t, "the notification to be noted", func() bool { return len(value[[]string](t)(w.store.NoticesDue(ctx))) == 0 })
	old := w.world
	crashed := make(chan *world)
	go func() { crashed <- old.crash() }()
	close(hold)
	w.world = <-crashed
	w.service.Answer(nil)
	for len(w.service.Got) > 0 { // of the life before
		<-w.service.Got
	}
	w.silent()
	if got := w.connect("d").message(); got.ID != m.ID {
		t.Errorf("message %s", got.ID)
	}
}

// What cannot be noted is not told: it is told when it can be, once.
func TestPushWhileTheStoreFails(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", nil)
	w.failWrites("notice")
	m := say("one")
	w.post("d", m)
	until(t, "the note to fail", func() bool { return !w.hub.StoreFailedAt().IsZero() })
	if len(w.service.Got) != 0 {
		t.Error("it was told without a note")
	}
	w.healWrites("notice")
	if n := w.notified(); !slices.Equal(n.IDs, []string{m.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.silent()
}

// A notification is taken back when the device has what it told of.
func TestPushIsWithdrawn(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", nil)
	w.post("d", say("one"), say("two"))
	told := w.notifiedOf(2)
	c := w.connect("d")
	last := find(c, func(m *frame.Message) bool { return m.Text == "two" })
	w.silent() // sent is not read
	c.send(&frame.Ack{Seq: last.Seq})
	if n := w.notified(); n.Type != "withdraw" || !slices.Equal(n.IDs, told.IDs) || n.raw.Header.Get("Topic") != told.raw.Header.Get("Topic") {
		t.Errorf("%s", n.raw.Body)
	}
	c.send(&frame.Ack{Seq: last.Seq, Seen: true})
	c.sync()
	w.silent()
}

// A bare endpoint would ring to be told that there is nothing, so it is not.
func TestPushWithoutKeys(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	c := w.connect("d")
	sub := w.service.Subscribe()
	text, _ := json.Marshal(map[string]any{"kind": "unifiedpush", "endpoint": sub.Endpoint, "content": true})
	if r := c.call("push.register", string(text)); r.Err != nil {
		t.Fatal(show(r))
	}
	c.drop()
	w.post("d", say("secret"))
	if n := w.notified(); n.raw.Body != push.Wake {
		t.Errorf("%q", n.raw.Body)
	}
	c = w.connect("d")
	c.send(&frame.Ack{Seq: c.message().Seq})
	c.sync()
	w.silent()
}

// In a shared conversation each device that is away is told, and no longer when a person has seen it on another.
func TestPushInASharedConversation(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	phone, tablet := w.share()
	w.register(tablet, nil)
	tablet.drop()
	m := say("for both")
	w.post("phone", m)
	seq := find(phone, func(f *frame.Message) bool { return f.ID == m.ID }).Seq
	if n := w.notified(); n.raw.Path != w.endpointOf("tablet") || !slices.Equal(n.IDs, []string{m.ID}) {
		t.Fatalf("%s", n.raw.Body)
	}
	phone.send(&frame.Ack{Seq: seq})
	w.silent() // stored is not seen
	phone.send(&frame.Ack{Seq: seq, Seen: true})
	if n := w.notified(); n.Type != "withdraw" || !slices.Equal(n.IDs, []string{m.ID}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.post("phone", agent.Ask{Card: approvalCard("c1", 0)})
	find[*frame.Prompt](phone, nil)
	if n := w.notified(); n.Type != "card" {
		t.Errorf("%s", n.raw.Body)
	}
	phone.send(&frame.Answer{ID: "a1", PromptID: "c1", OptionID: "once"})
	if n := w.notified(); n.Type != "withdraw" || !slices.Equal(n.IDs, []string{"c1"}) {
		t.Errorf("%s", n.raw.Body)
	}
	w.silent()
}

func TestPushOfACard(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, unhurried)
	w.away("d", map[string]any{"content": true})
	card := approvalCard("c1", 0)
	card.Text, card.Command, card.Life = "**May I?** <b>", "rm -rf   build", time.Minute
	w.post("d", say("before"), agent.Ask{Card: card}, say("after"))
	n := w.notified()
	if n.Type != "card" || n.ID != "c1" || n.Count != 3 || n.Body != "May I? <b>\nrm -rf build" || n.Actions != nil || n.raw.Header.Get("Urgency") != "high" {
		t.Errorf("%s %v", n.raw.Body, n.raw.Header)
	}
	var ttl int
	if _, err := fmt.Sscan(n.raw.Header.Get("TTL"), &ttl); err != nil || ttl > 60 || ttl < 30 {
		t.Errorf("TTL %d (%v)", ttl, err)
	}
	w.post("d", agent.CloseCard{ID: "c1", OptionID: "deny", Expired: true})
	if n2 := w.notified(); n2.Type != "withdraw" || !slices.Equal(n2.IDs, []string{"c1"}) || n2.raw.Header.Get("Topic") != n.raw.Header.Get("Topic") {
		t.Errorf("%s", n2.raw.Body)
	}
	w.silent()
}

// A card that nobody answers is taken back when its time is over.
func TestPushOfAnExpiredCard(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", nil)
	card := approvalCard("c1", 0)
	card.Life = 4 * time.Second
	w.post("d", agent.Ask{Card: card})
	if n := w.notified(); n.Type != "card" {
		t.Errorf("%s", n.raw.Body)
	}
	if n := w.notified(); n.Type != "withdraw" || !slices.Equal(n.IDs, []string{"c1"}) {
		t.Errorf("%s", n.raw.Body)
	}
}

func TestPushTitles(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, nil)
	w.away("d", map[string]any{"content": true})
	long := "# News\n\n- one **two** [three](https://example.com/x)\n```go\nfour\n```\n" + strings.Repeat("äö ", 200)
	w.post("d", agent.Say{ID: "m1", Text: long, Final: true, Source: frame.SourceCron, Job: "Morning news"})
	n := w.notified()
	if n.Title != "Morning news" || !strings.HasPrefix(n.Body, "News one two three four äö äö") || len([]rune(n.Body)) > 120 || !strings.HasSuffix(n.Body, "…") {
		t.Errorf("%s", n.raw.Body)
	}
	f := value[chatFile](t)(w.file("a.txt"))
	w.post("d", agent.SendFile{ID: "f1", File: f.File, Caption: "Look"})
	if n := w.notified(); n.Type != "file" || n.Count != 2 || n.Body != "Look" {
		t.Errorf("%s", n.raw.Body)
	}
}

type chatFile struct{ agent.File }

func (w *pushWorld) file(name string) (chatFile, error) {
	put, err := w.files.Put([]byte("content of " + name))
	return chatFile{agent.File{Kind: "document", Mime: "text/plain", Name: name, Hash: put.Hash, Size: put.Size}}, err
}

// The longest lists and texts still fit into one notification.
func TestPushFits(t *testing.T) {
	t.Parallel()
	w := newPushWorld(t, func(o *hub.Options) { o.PushActions = []byte("key") })
	w.away("d", map[string]any{"content": true})
	var events []agent.Event
	for range 100 {
		events = append(events, say(strings.Repeat("x", 100)))
	}
	card := approvalCard(strings.Repeat("c", 100), 0)
	card.Text = strings.Repeat("👩‍👩‍👧‍👦", 1000)
	card.Command = strings.Repeat("\u0001\"", 1000)
	for i := range 8 {
		card.Options = append(card.Options, agent.Option{ID: strings.Repeat(fmt.Sprint(i), 100), Label: strings.Repeat("é", 200)})
	}
	w.post("d", append(events, agent.Ask{Card: card})...)
	n := w.notified()
	if n.Type != "card" || n.Count != 101 || n.Body == "" || len(n.IDs) == 0 || n.IDs[len(n.IDs)-1] != card.ID {
		t.Errorf("%s", n.raw.Body)
	}
}
