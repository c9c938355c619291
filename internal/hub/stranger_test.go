package hub_test

import (
	"strings"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/chat"
	"hermes-mobile/internal/hub"
)

// Before hello nobody may make the server hold more than a little; afterwards a frame may have its 16 MiB.
func TestFirstFrameIsSmall(t *testing.T) {
	w := newWorld(t, nil)
	c := w.socket(false)
	c.send(&frame.Hello{Token: strings.Repeat("x", 100<<10), Device: frame.Device{ID: "d"}})
	if e := expect[*frame.Error](c); e.Code != frame.TooBig {
		t.Errorf("got %s", show(e))
	}
	if code := c.closed(); code != int(frame.CloseTooBig) {
		t.Errorf("closed with %d", code)
	}
	if a := w.connect("d").text("m1", strings.Repeat("x", 900<<10)); a.Duplicate {
		t.Errorf("got %s", show(a))
	}
}

// A tunnel makes a phone a local peer: that alone must not let a stranger write to other people's devices.
func TestStrangerMayNotDeliver(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.AllowAllUsers = false })
	_, err := w.pairing.ApproveUser("anna", "")
	ok(t, err)
	d, stranger, sender := w.connect("d", withUser("anna")), w.connect("stranger"), w.connect("cron", withToken(deliverToken))
	stranger.send(&frame.Deliver{ID: "x", To: "d", Text: "from a stranger"})
	if e := expect[*frame.Error](stranger); e.Code != frame.Forbidden || e.Ref != "x" {
		t.Errorf("got %s", show(e))
	}
	sender.send(&frame.Deliver{ID: "x", To: "d", Text: "from the scheduler"})
	expect[*frame.Delivered](sender)
	if m := d.message(); m.Text != "from the scheduler" {
		t.Errorf("got %s", show(m))
	}
}

// A card says the whole time that it has, and no more.
func TestCardSaysItsTime(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("d")
	for i := range 5 {
		card := approvalCard(chat.NewID(), 0)
		card.Life = time.Duration(100+i) * time.Second
		w.post("d", chat.Ask{Card: card})
		if p := expect[*frame.Prompt](c); p.TimeoutSeconds != 100+i || p.ExpiresAt.Nanosecond() != 0 || time.Until(p.ExpiresAt) > card.Life+time.Second {
			t.Errorf("got %s", show(p))
		}
	}
}
