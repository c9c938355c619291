package hub_test

import (
	"fmt"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/store"
)

func (w *world) say(device, text string) {
	w.t.Helper()
	w.post(device, agent.Say{ID: agent.NewID(), Text: text, Final: true})
}

// texts returns the texts of the durable messages among frames, and checks that their numbers grow.
func texts(t tb, frames []frame.Down) []string {
	t.Helper()
	list, last := []string{}, int64(0)
	for _, f := range frames {
		if m, is := f.(*frame.Message); is && m.Final {
			if m.Seq <= last {
				t.Fatalf("message %s follows number %d", show(m), last)
			}
			list, last = append(list, m.Text), m.Seq
		}
	}
	return list
}

func wantTexts(t tb, got []string, from, to int) {
	t.Helper()
	want := []string{}
	for i := from; i <= to; i++ {
		want = append(want, fmt.Sprint(i))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// A full outbox: the agent's words push the oldest out, and who asks for those is told that something is lost.
func TestOutboxIsFull(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.OutboxEntries = 5 })
	c := w.connect("d")
	epoch := c.Ready.Resume.Epoch
	c.drop()
	for i := 1; i <= 8; i++ {
		w.say("d", fmt.Sprint(i))
	}
	sender := w.connect("s", withToken(deliverToken))
	sender.send(&frame.Deliver{ID: "x1", To: "d", Text: "9"})
	if e := expect[*frame.Error](sender); e.Code != frame.DeviceOffline || e.Ref != "x1" {
		t.Errorf("a delivery to a full outbox gets %s", show(e))
	}
	for _, tc := range []struct {
		seq  int64
		lost bool
		from int
	}{{0, true, 4}, {2, true, 4}, {3, false, 4}, {9, true, 4}} { // the right one comes last but one: it acknowledges
		c := w.connect("d", withResume(epoch, tc.seq))
		if c.Ready.Resume.Lost != tc.lost {
			t.Errorf("resume from %d says lost %v", tc.seq, c.Ready.Resume.Lost)
		}
		wantTexts(t, texts(t, c.sync()), tc.from, 8)
	}
	c = w.connect("d", withResume(epoch, 6))
	wantTexts(t, texts(t, c.sync()), 7, 8)
	sender.send(&frame.Deliver{ID: "x1", To: "d", Text: "9"}) // an error used no id up
	if d := expect[*frame.Delivered](sender); d.Queued {
		t.Errorf("delivered %s", show(d))
	}
	wantTexts(t, texts(t, c.sync()), 9, 9)
	w.restart()
	c = w.connect("d", withResume(epoch, 4))
	if !c.Ready.Resume.Lost {
		t.Error("after a restart the floor is forgotten")
	}
	wantTexts(t, texts(t, c.sync()), 7, 9)
}

// Many at once through a nearly full outbox: never more than allowed remain.
func TestOutboxFilledAtOnce(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.OutboxEntries = 5 })
	w.connect("d").drop()
	var events []agent.Event
	for i := 1; i <= 20; i++ {
		events = append(events, agent.Say{ID: agent.NewID(), Text: fmt.Sprint(i), Final: true})
	}
	w.post("d", events...)
	w.say("d", "21")
	if list := value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx)); list[0].Waiting > 5 {
		t.Errorf("%d entries wait, 5 are allowed", list[0].Waiting)
	}
	c := w.connect("d", withResume("another", 0))
	got := texts(t, c.sync())
	if len(got) == 0 || got[len(got)-1] != "21" {
		t.Errorf("replayed %v", got)
	}
}

// The sweep drops what is too old while the device is connected: then its cursor is behind, and it must be told so.
func TestSweepUnderALiveSession(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	epoch := c.Ready.Resume.Epoch
	for i := 1; i <= 6; i++ {
		w.say("d", fmt.Sprint(i))
	}
	wantTexts(t, texts(t, c.sync()), 1, 6)
	ok(t, w.store.Sweep(ctx, store.Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 2}, time.Now()))
	c = w.connect("d", withResume(epoch, 1)) // it lost what it had after 1; the old connection is still there
	got := texts(t, c.sync())
	wantTexts(t, got, 5, 6)
	if !c.Ready.Resume.Lost {
		t.Error("2 to 4 are gone and the device is told that nothing is lost")
	}
}

// A client that never resumes nor acknowledges gets what no connection of it was ever sent.
func TestClientWithoutCursor(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	w.say("d", "1")
	wantTexts(t, texts(t, c.sync()), 1, 1)
	c.drop()
	w.say("d", "2")
	c = w.connect("d")
	wantTexts(t, texts(t, c.sync()), 2, 2)
	w.restart()
	w.say("d", "3")
	c = w.connect("d")
	wantTexts(t, texts(t, c.sync()), 3, 3)
	c = w.connect("d")
	wantTexts(t, texts(t, c.sync()), 1, 0)
}

// What waited in the server for a slow client that then left was never written to its socket: it must come again.
func TestClientWithoutCursorThatWasSlow(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced ", replaced), func(t *testing.T) {
			w := newWorld(t, nil)
			c := w.open("d", slow())
			until(t, "the device to be connected", func() bool { return w.live("d") })
			const each, many = 4000, 100
			for i := 1; i <= many; i++ {
				w.say("d", fmt.Sprintf("%0*d", each, i))
			}
			if !replaced {
				_ = c.ws.CloseNow()
				until(t, "the device to be gone", func() bool { return !w.live("d") })
			}
			got := texts(t, w.connect("d").sync())
			if len(got) < many/2 { // the buffers in between hold far less than half
				t.Errorf("only %d of %d messages came again to a client that had read nothing", len(got), many)
			}
			if len(got) > 0 && got[len(got)-1] != fmt.Sprintf("%0*d", each, many) {
				t.Error("the newest is missing")
			}
		})
	}
}

// live reports whether a device is connected.
func (w *world) live(id string) bool {
	for _, d := range value[[]hub.DeviceInfo](w.t)(w.hub.Owner().Devices(ctx)) {
		if d.ID == id {
			return d.Connected
		}
	}
	return false
}

// An acknowledgement of what was never sent is one of everything there is, and does no harm to what follows.
func TestAckOfTheFuture(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	epoch := c.Ready.Resume.Epoch
	w.say("d", "1")
	wantTexts(t, texts(t, c.sync()), 1, 1)
	c.send(&frame.Ack{Seq: 1 << 60})
	c.send(&frame.Ack{Seq: 0})
	c.sync()
	w.say("d", "2")
	wantTexts(t, texts(t, c.sync()), 2, 2)
	c = w.connect("d", withResume(epoch, 1))
	if c.Ready.Resume.Lost {
		t.Error("lost")
	}
	wantTexts(t, texts(t, c.sync()), 2, 2)
}

// What one write brought counts as sent like what came alone: it does not come again to a client without a cursor.
func TestClientWithoutCursorAfterABatch(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprint("replaced ", replaced), func(t *testing.T) {
			w := newWorld(t, nil)
			c := w.connect("d")
			c.text("m1", "hello")
			h := w.take()
			w.post("d", agent.Say{ID: "s1", Text: "one", Final: true, N: h.N}, agent.Say{ID: "s2", Text: "two", Final: true, N: h.N}, agent.Done{N: h.N})
			for _, want := range []string{"one", "two"} {
				if m := c.message(); m.Text != want {
					t.Errorf("got %s", show(m))
				}
			}
			if !replaced {
				c.drop()
				until(t, "the device to be gone", func() bool { return !w.live("d") })
			}
			w.connect("d").quiet()
		})
	}
}
