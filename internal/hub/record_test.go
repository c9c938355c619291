package hub_test

import (
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// deliveryStates lists the states of all deliveries, oldest first.
func (w *world) deliveryStates() (list []string) {
	w.t.Helper()
	for _, d := range value[[]hub.DeliveryInfo](w.t)(w.hub.Owner().Deliveries(ctx, "", "", 100)) {
		list = append(list, d.State)
	}
	slices.Reverse(list)
	return list
}

func (w *world) wantStates(want ...string) {
	w.t.Helper()
	until(w.t, "the deliveries to be "+strings.Join(want, ", "), func() bool { return slices.Equal(w.deliveryStates(), want) })
}

func (w *world) deliver(id, text string) {
	w.t.Helper()
	d, err := w.hub.Owner().Deliver(ctx, "sender", &frame.Deliver{ID: id, To: "d", Text: text})
	ok(w.t, err)
	if _, is := d.(*frame.Delivered); !is {
		w.t.Fatalf("answered %s", show(d))
	}
}

// The record of a delivery says no more than what is known: kept, written, acknowledged, seen.
func TestDeliveryRecord(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.drop()
	until(t, "the device to be gone", func() bool { return !w.live("d") })
	w.deliver("1", "one")
	w.post("d", agent.Say{ID: agent.NewID(), Text: "two", Final: true, Source: frame.SourceCron, Job: "morning"})
	w.wantStates("queued", "queued")
	w.restart()
	w.wantStates("queued", "queued")

	c = w.connect("d")
	if got := texts(t, c.sync()); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("got %v", got)
	}
	w.wantStates("sent", "sent")
	first := c.Ready.Resume.From
	c.send(&frame.Ack{Seq: first})
	w.wantStates("delivered", "sent")
	c.send(&frame.Ack{Seq: first + 1, Seen: true})
	w.wantStates("seen", "seen")

	w.deliver("1", "one")
	w.wantStates("seen", "seen")
	file := value[hashed](t)(w.put([]byte("x")))
	w.post("d", agent.SendFile{ID: agent.NewID(), File: agent.File{Kind: "document", Name: "report.txt", Hash: file.hash, Size: file.size}, Source: frame.SourceCron})
	got := expect[*frame.Media](c)
	w.wantStates("seen", "seen", "sent")
	c.drop()
	w.connect("d", withResume(c.Ready.Resume.Epoch, got.Seq)).sync()
	w.wantStates("seen", "seen", "delivered")

	list := value[[]hub.DeliveryInfo](t)(w.hub.Owner().Deliveries(ctx, "d", "", 2))
	if len(list) != 2 || list[0].Source != "cron" || list[1].Job != "morning" || list[1].SentAt == nil || list[1].DeliveredAt == nil || list[1].SeenAt == nil || list[1].ExpiredAt != nil {
		t.Errorf("the newest two: %+v", list)
	}
	if list := value[[]hub.DeliveryInfo](t)(w.hub.Owner().Deliveries(ctx, "d", "delivered", 10)); len(list) != 1 || list[0].Number != 3 {
		t.Errorf("those delivered: %+v", list)
	}
	if list := value[[]hub.DeliveryInfo](t)(w.hub.Owner().Deliveries(ctx, "other", "", 10)); len(list) != 0 {
		t.Errorf("those of another device: %+v", list)
	}
}

// What a reply answered is no delivery.
func TestRepliesHaveNoRecord(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	c.text("m1", "hello")
	h := w.take()
	w.post("d", agent.Say{ID: "s1", Text: "one", Final: true, N: h.N}, agent.Done{N: h.N})
	c.message()
	w.deliver("1", "two")
	c.message()
	w.wantStates("sent")
}

// What a full outbox or the owner drops has expired, but for what was sent already.
func TestDeliveryExpires(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.OutboxEntries = 2 })
	c := w.connect("d")
	w.deliver("1", "sent")
	c.message()
	c.drop()
	until(t, "the device to be gone", func() bool { return !w.live("d") })
	for _, id := range []string{"2", "3"} {
		w.deliver(id, id)
	}
	w.post("d", agent.Say{ID: agent.NewID(), Text: "4", Final: true, Source: frame.SourceCron})
	w.wantStates("sent", "expired", "queued", "queued")
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	w.wantStates("sent", "expired", "expired", "expired")
}

// What was written to the device is noted a little later. Nothing that happens before may take it for what never was.
func TestDeliverySentIsNotExpired(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.OutboxEntries = 2 })
	c := w.connect("d")
	for _, id := range []string{"1", "2", "3"} {
		w.deliver(id, id)
		c.message()
	}
	w.wantStates("sent", "sent", "sent")
	w.deliver("4", "4")
	c.message()
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	w.wantStates("sent", "sent", "sent", "sent")
}
