package hub_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/store"
)

// row is an entry of an outbox.
type row struct {
	seq  int64
	size int
}

// rows reads a device's outbox from the store.
func (w *world) rows(t tb, id string) (list []row) {
	t.Helper()
	dev := value[*store.Device](t)(w.store.Device(ctx, id))
	for _, o := range value[[]store.Out](t)(w.store.Outbox(ctx, dev.N, 0, 1<<20)) {
		list = append(list, row{o.Seq, len(o.Body)})
	}
	return list
}

func bytesOf(rows []row) (sum int) {
	for _, r := range rows {
		sum += r.size
	}
	return sum
}

// An outbox that is full by bytes: the oldest go, exactly as many as must, who asks for those is told that something is lost, and what was
// delivered and never sent is recorded as expired.
func TestOutboxIsFullByBytes(t *testing.T) {
	const most = 5000
	w := newWorld(t, func(o *hub.Options) { o.OutboxBytes = most })
	c := w.connect("d")
	epoch := c.Ready.Resume.Epoch
	c.drop()
	until(t, "the device to be gone", func() bool { return !w.live("d") })
	w.deliver("x0", "first")
	long := strings.Repeat("x", 880)
	for range 4 {
		w.say("d", long)
	}
	before := w.rows(t, "d")
	if len(before) != 5 || bytesOf(before) > most {
		t.Fatalf("before it is full: %+v", before)
	}
	sender := w.connect("s", withToken(deliverToken))
	sender.send(&frame.Deliver{ID: "x1", To: "d", Text: strings.Repeat("y", 2000)})
	if e := expect[*frame.Error](sender); e.Code != frame.DeviceOffline || e.Ref != "x1" {
		t.Errorf("a delivery to a full outbox gets %s", show(e))
	}
	if got := w.rows(t, "d"); !slices.Equal(got, before) {
		t.Errorf("a delivery pushed something out: %+v", got)
	}
	w.say("d", long)
	after := w.rows(t, "d")
	if len(after) != 5 || after[0].seq != before[1].seq || bytesOf(after) > most || bytesOf(after)+before[0].size <= most {
		t.Errorf("when it is full: %+v", after)
	}
	w.wantStates("expired")
	if c := w.connect("d", withResume(epoch, 0)); !c.Ready.Resume.Lost {
		t.Error("the first is gone and the device is told that nothing is lost")
	} else if got := c.sync(); len(texts(t, got)) != 5 {
		t.Errorf("%d came", len(texts(t, got)))
	}
	w.say("d", strings.Repeat("z", 2*most)) // larger than all of it: it comes alone
	if got := w.rows(t, "d"); len(got) != 1 || got[0].size < 2*most {
		t.Errorf("one that is larger than the bound leaves %+v", got)
	}
	w.restart()
	w.say("d", long)
	if got := w.rows(t, "d"); len(got) != 1 || got[0].size > 2000 {
		t.Errorf("after a restart: %+v", got)
	}
}

// Many at once, of several sizes, through a nearly full outbox.
func TestOutboxFilledAtOnceByBytes(t *testing.T) {
	const most = 5000
	w := newWorld(t, func(o *hub.Options) { o.OutboxBytes = most })
	w.connect("d").drop()
	for range 3 {
		var events []agent.Event
		for i := range 20 {
			events = append(events, agent.Say{ID: agent.NewID(), Text: strings.Repeat("x", 37*i), Final: true})
		}
		w.post("d", events...)
	}
	for range 3 { // entries of one post make no room for one another: they are stored as one
		w.say("d", "last")
	}
	rows := w.rows(t, "d")
	if bytesOf(rows) > most || len(rows) < 4 {
		t.Errorf("%d bytes in %d entries", bytesOf(rows), len(rows))
	}
}

// Whatever is said, acknowledged in part or in whole, swept, refused by a full disk, and read back after a restart: an outbox never holds
// more than its bound, and nothing goes before it must.
func TestOutboxBytesProperty(t *testing.T) {
	const most, entries = 4000, 12
	w := newWorld(t, func(o *hub.Options) { o.OutboxBytes, o.OutboxEntries = most, entries })
	checks := 0
	rapid.Check(t, func(rt *rapid.T) {
		checks++
		id := fmt.Sprint("d", checks)
		c := w.connect(id)
		defer func() { c.drop() }()
		var model []row
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch what := rapid.IntRange(0, 12).Draw(rt, "what"); {
			case what <= 8:
				text := strings.Repeat("x", rapid.SampledFrom([]int{0, 50, 300, 900, 2500, 5000}).Draw(rt, "size"))
				w.say(id, text)
				got := w.rows(rt, id)
				if len(got) == 0 {
					rt.Fatal("nothing was stored")
				}
				model = append(model, got[len(got)-1])
				for len(model) > 1 && (len(model) > entries || bytesOf(model) > most) {
					model = model[1:]
				}
			case what == 9 && len(model) > 0: // some
				i := rapid.IntRange(0, len(model)-1).Draw(rt, "up to")
				c.send(&frame.Ack{Seq: model[i].seq})
				model = model[i+1:]
				until(rt, "the acknowledgement", func() bool { return len(w.rows(rt, id)) == len(model) })
			case what == 10:
				if len(model) > 0 {
					c.send(&frame.Ack{Seq: model[len(model)-1].seq})
				}
				model = nil
				until(rt, "the acknowledgement", func() bool { return len(w.rows(rt, id)) == 0 })
			case what == 11:
				keep := rapid.IntRange(1, entries).Draw(rt, "kept")
				w.hub.Swept()
				ok(rt, w.store.Sweep(ctx, store.Retention{IDs: time.Hour, Outbox: time.Hour, Entries: keep}, time.Now()))
				w.hub.Swept()
				model = model[max(0, len(model)-keep):]
			case what == 12:
				c.drop()
				until(rt, "the device to be gone", func() bool { return !w.live(id) })
				c = w.connect(id)
			}
			if got := w.rows(rt, id); !slices.Equal(got, model) {
				rt.Fatalf("the outbox holds %+v, want %+v", got, model)
			}
		}
	})
}

// A session that stays in memory counts right what was dropped behind its back, by number, or not at all: nothing goes before it must,
// and the bound holds.
func TestOutboxBytesStayTrue(t *testing.T) {
	const most = 5000
	long := strings.Repeat("x", 1000)
	for name, change := range map[string]func(w *world, c *client, fill func(n int)){
		"a sweep": func(w *world, _ *client, fill func(int)) {
			fill(4)
			w.hub.Swept()
			ok(t, w.store.Sweep(ctx, store.Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 1}, time.Now()))
			w.hub.Swept()
		},
		"a part is acknowledged": func(w *world, c *client, fill func(int)) {
			fill(4)
			c.send(&frame.Ack{Seq: w.rows(t, "d")[2].seq})
			until(t, "the acknowledgement", func() bool { return len(w.rows(t, "d")) == 1 })
		},
		"many come at once": func(w *world, _ *client, fill func(int)) {
			fill(1)
			var events []agent.Event
			for i := range 28 {
				text := "short"
				if i >= 24 { // when their number was already too large
					text = long
				}
				events = append(events, agent.Say{ID: agent.NewID(), Text: text, Final: true})
			}
			w.post("d", events...)
		},
		"all is acknowledged": func(w *world, c *client, fill func(int)) {
			fill(4)
			c.send(&frame.Ack{Seq: w.rows(t, "d")[3].seq})
			until(t, "the acknowledgement", func() bool { return len(w.rows(t, "d")) == 0 })
			fill(1)
		},
		"entries are too many": func(w *world, _ *client, fill func(int)) {
			fill(3)
			for range 20 {
				w.say("d", "short")
			}
			fill(1)
		},
		"the store fails": func(w *world, _ *client, fill func(int)) {
			fill(1)
			w.failWrites("outbox")
			for range 12 {
				if err := w.try("d", agent.Say{ID: agent.NewID(), Text: long, Final: true}); err == nil {
					t.Error("stored in spite of the failing store")
				}
			}
			w.healWrites("outbox")
		},
		"it is wiped": func(w *world, _ *client, fill func(int)) {
			fill(4)
			ok(t, w.hub.Owner().Revoke(ctx, "d"))
			ok(t, w.hub.Owner().Unbind(ctx, "d"))
			w.connect("d")
			fill(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *hub.Options) { o.OutboxBytes, o.OutboxEntries = most, 20 })
			c := w.connect("d")
			fill := func(n int) {
				for range n {
					w.say("d", long)
				}
			}
			change(w, c, fill)
			before := w.rows(t, "d")
			for len(before) > 0 && bytesOf(before)+1200 <= most && len(before) < 19 { // each fits
				fill(1)
				after := w.rows(t, "d")
				if len(after) != len(before)+1 || after[0] != before[0] {
					t.Fatalf("one that fits leaves %+v of %+v", after, before)
				}
				before = after
			}
			for range 8 { // none fits, and no more goes than must
				fill(1)
				after := w.rows(t, "d")
				if bytesOf(after) > most || len(after) < 4 {
					t.Fatalf("one that does not fit leaves %+v of %+v", after, before)
				}
				before = after
			}
		})
	}
}

// What could not be stored drops nothing, also of the entries that it was to push out.
func TestOutboxBytesWhenTheStoreFails(t *testing.T) {
	const most = 5000
	w := newWorld(t, func(o *hub.Options) { o.OutboxBytes = most })
	w.connect("d") // and so its session stays in memory
	long := strings.Repeat("x", 1000)
	for range 4 {
		w.say("d", long)
	}
	before := w.rows(t, "d")
	w.failWrites("outbox")
	for range 5 {
		if err := w.try("d", agent.Say{ID: agent.NewID(), Text: long, Final: true}); err == nil {
			t.Fatal("stored in spite of the failing store")
		}
	}
	w.healWrites("outbox")
	if got := w.rows(t, "d"); !slices.Equal(got, before) {
		t.Errorf("what could not be stored left %+v, want %+v", got, before)
	}
	w.say("d", "short")
	if got := w.rows(t, "d"); len(got) != 5 {
		t.Errorf("a short one beside four leaves %+v", got)
	}
	w.say("d", long)
	if got := w.rows(t, "d"); len(got) != 5 || got[0].seq != before[1].seq {
		t.Errorf("the next one leaves %+v", got)
	}
}
