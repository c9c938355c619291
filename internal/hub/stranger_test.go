package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// Before hello nobody may make the server hold more than a little; afterwards a frame may have its 16 MiB.
func TestFirstFrameIsSmall(t *testing.T) {
	w := newWorld(t, nil)
	c := w.socket(false)
	hello := &frame.Hello{Token: token, Device: frame.Device{ID: "d"}}
	hello.Device.Name = strings.Repeat("x", frame.MaxHello+1-len(frame.EncodeUp(hello))-len(`,"name":""`))
	if n := len(frame.EncodeUp(hello)); n != frame.MaxHello+1 {
		t.Fatalf("the hello has %d bytes", n)
	}
	c.send(hello)
	if e := expect[*frame.Error](c); e.Code != frame.TooBig || !strings.Contains(e.Message, "4 KiB") {
		t.Errorf("got %s", show(e))
	}
	if code := c.closed(); code != int(frame.CloseTooBig) {
		t.Errorf("closed with %d", code)
	}
	hello.Device.Name = hello.Device.Name[1:]
	d := w.socket(false)
	d.send(hello)
	expect[*frame.Ready](d)
	d.send(&frame.Text{ID: "large", Text: strings.Repeat("x", 900<<10)})
	expect[*frame.Accepted](d)
	if a := w.connect("d").text("m1", strings.Repeat("x", 900<<10)); a.Duplicate {
		t.Errorf("got %s", show(a))
	}
}

// A code is no code before it was looked up: until then nothing more is read, and what was sent behind a right one counts.
func TestNothingIsReadBeforeTheCodeIsChecked(t *testing.T) {
	w := newWorld(t, nil)
	code, _, _, err := w.hub.Owner().Invite(ctx, access.PairingCode{}, time.Minute)
	ok(t, err)
	release := w.holdDisk()
	c := w.socket(false)
	c.send(&frame.Hello{Pair: code, Device: frame.Device{ID: "d"}})
	sent := make(chan error, 1)
	go func() {
		sent <- c.ws.Write(ctx, websocket.MessageText, frame.EncodeUp(&frame.Text{ID: "large", Text: strings.Repeat("x", 900<<10)}))
	}()
	release()
	expect[*frame.Ready](c)
	expect[*frame.Accepted](c)
	ok(t, <-sent)

	wrong := w.socket(false)
	wrong.send(&frame.Hello{Pair: "AAAA-AAAA", Device: frame.Device{ID: "e"}})
	_ = wrong.ws.Write(ctx, websocket.MessageText, frame.EncodeUp(&frame.Text{ID: "large", Text: strings.Repeat("x", 900<<10)}))
	if e := expect[*frame.Error](wrong); e.Code != frame.AuthFailed {
		t.Errorf("got %s", show(e))
	}
	if code := wrong.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
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
		card := approvalCard(agent.NewID(), 0)
		card.Life = time.Duration(100+i) * time.Second
		w.post("d", agent.Ask{Card: card})
		if p := expect[*frame.Prompt](c); p.TimeoutSeconds != 100+i || p.ExpiresAt.Nanosecond() != 0 || time.Until(p.ExpiresAt) > card.Life+time.Second {
			t.Errorf("got %s", show(p))
		}
	}
}
