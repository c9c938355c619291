package hub_test

import (
	"fmt"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/hub"
)

// ids are the devices that the server knows.
func (w *world) ids() map[string]bool {
	w.t.Helper()
	ids := map[string]bool{}
	for _, d := range value[[]hub.DeviceInfo](w.t)(w.hub.Owner().Devices(ctx)) {
		ids[d.ID] = true
	}
	return ids
}

// leave ends the connection of a device, and waits until the server knows.
func (c *client) leave() {
	c.w.t.Helper()
	_ = c.ws.CloseNow()
	until(c.w.t, "the server to know that "+c.id+" is gone", func() bool { return !c.w.info(c.id).Connected })
}

// A device that nobody approved for a week is dropped. What is somebody's stays, and so does what was shut out.
func TestUnapprovedDevicesAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	for _, id := range []string{"stranger", "revoked", "approved-later", "addressee"} {
		w.connect(id).leave()
	}
	w.pair("paired", access.PairingCode{}).leave()
	w.connect("connected")
	ok(t, w.hub.Owner().Revoke(ctx, "revoked"))
	value[access.User](t)(w.pairing.ApproveUser("approved-later", ""))
	value[access.User](t)(w.pairing.ApproveUser("addressee", ""))
	if d, ok := value[frame.Down](t)(w.hub.Owner().Deliver(ctx, "owner", &frame.Deliver{ID: "d1", To: "addressee", Text: "hello"})).(*frame.Delivered); !ok {
		t.Fatalf("the delivery is answered with %v", d)
	}
	ok(t, w.hub.Owner().RevokeUser(ctx, "addressee"))

	ok(t, w.hub.Owner().DropUnapproved(ctx, time.Now().Add(-time.Hour)))
	if got := w.ids(); len(got) != 6 {
		t.Errorf("devices of this minute were dropped: %v", got)
	}
	for range 2 {
		ok(t, w.hub.Owner().DropUnapproved(ctx, time.Now().Add(time.Minute)))
		got := w.ids()
		for _, id := range []string{"revoked", "approved-later", "addressee", "paired", "connected"} {
			if !got[id] {
				t.Errorf("%s was dropped", id)
			}
		}
		if got["stranger"] {
			t.Error("the device that nobody approved is still there")
		}
		w.restart()
		w.connect("connected")
	}
	if list := w.audited("device.dropped"); len(list) != 1 || list[0].Subject != "stranger" {
		t.Errorf("the audit log has %+v", list)
	}
	w.open("revoked").refused(frame.AuthFailed, "revoked")

	// It begins anew, and nothing of what there was comes back.
	c := w.connect("stranger")
	if c.Ready.Resume.To != 0 || c.Ready.Resume.Lost || c.Ready.Approved {
		t.Errorf("the device that was dropped gets %s", show(c.Ready))
	}
	value[access.User](t)(w.pairing.ApproveUser("stranger", ""))
	ok(t, w.hub.Owner().UserApproved(ctx, "stranger"))
	expect[*frame.Approved](c)
	c.text("m1", "hello")
	if h := w.next(); h.Text != "hello" {
		t.Errorf("the agent got %q", h.Text)
	}
}

// Devices are dropped while they come and go: none is lost that is connected.
func TestDropWhileTheyCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	done := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
				if err := w.hub.Owner().DropUnapproved(ctx, time.Now().Add(time.Minute)); err != nil {
					done <- err
					return
				}
			}
		}
	}()
	for i := range 20 {
		c := w.connect("tel")
		c.send(&frame.Ping{ID: fmt.Sprint(i)})
		expect[*frame.Pong](c)
		if !w.ids()["tel"] {
			t.Fatal("a device that is connected was dropped")
		}
		_ = c.ws.CloseNow()
		until(t, "the server to see that it left", func() bool { return w.hub.Connections() == 0 })
	}
	close(stop)
	ok(t, <-done)
}

// A token of an app brings at most a hundred devices that nobody approved. Approved ones do not count, and a code is another way.
func TestUnapprovedDevicesOfAToken(t *testing.T) {
	t.Parallel()
	const most, other = 100, "another-token"
	w := newWorld(t, func(o *hub.Options) {
		unguarded(o)
		o.Tokens.Replace([]access.Token{{Label: "app", Secret: token}, {Label: "other", Secret: other}})
	})
	for i := range most {
		w.connect(fmt.Sprint("d", i))
	}
	w.open("one-more").refused(frame.Forbidden, "wait for approval")
	if w.ids()["one-more"] {
		t.Error("the device that was refused is stored")
	}
	w.connect("d7") // who is here may come again
	w.connect("by-another", withToken(other))
	w.pair("by-code", access.PairingCode{})
	value[access.User](t)(w.pairing.ApproveUser("d3", ""))
	w.connect("d3")
	w.connect("one-more")
	w.open("too-many").refused(frame.Forbidden, "wait for approval")
	ok(t, w.hub.Owner().Revoke(ctx, "d5"))
	w.connect("in-its-place")
}

// A user has at most a hundred devices by a token of an app. Revoked ones do not count, and the owner can add more with a code.
func TestDevicesOfAUser(t *testing.T) {
	t.Parallel()
	const most = 100
	w := newWorld(t, nil)
	for i := range most {
		w.connect(fmt.Sprint("d", i), withUser("anna"))
	}
	w.open("one-more", withUser("anna")).refused(frame.Forbidden, "the user has 100 devices")
	if w.ids()["one-more"] {
		t.Error("the device that was refused is stored")
	}
	w.connect("d7", withUser("anna"))
	w.connect("other", withUser("ben"))
	w.pair("by-code", access.PairingCode{User: "anna"})
	w.open("one-more", withUser("anna")).refused(frame.Forbidden, "the user has 100 devices, which is the limit")
	ok(t, w.hub.Owner().Revoke(ctx, "d1"))
	ok(t, w.hub.Owner().Revoke(ctx, "d2"))
	w.connect("one-more", withUser("anna"))
}
