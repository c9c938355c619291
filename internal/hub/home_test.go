package hub_test

import (
	"errors"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/hub"
)

// The owner chooses the home channel, and takes it back; it outlasts a restart.
func TestHome(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.AllowAllUsers = false })
	home := func() string {
		t.Helper()
		if d := value[*hub.DeviceInfo](t)(w.hub.Owner().Home(ctx)); d != nil {
			return d.ID
		}
		return ""
	}
	if err := w.hub.Owner().SetHome(ctx, "d"); !errors.Is(err, hub.ErrUnknownDevice) {
		t.Errorf("a device that nobody knows: %v", err)
	}
	w.connect("d", withUser("anna"))
	if err := w.hub.Owner().SetHome(ctx, "d"); !errors.Is(err, hub.ErrNotApproved) {
		t.Errorf("a device that nobody approved: %v", err)
	}
	if home() != "" {
		t.Errorf("the home channel is %q", home())
	}
	_, err := w.pairing.ApproveUser("anna", "")
	ok(t, err)
	ok(t, w.hub.Owner().SetHome(ctx, "d"))
	w.restart()
	if home() != "d" {
		t.Errorf("the home channel is %q", home())
	}
	c := w.connect("d", withUser("anna"))
	deliver := func(id string) frame.Down {
		t.Helper()
		return value[frame.Down](t)(w.hub.Owner().Deliver(ctx, "s", &frame.Deliver{ID: id, To: "home", Text: id}))
	}
	if d := deliver("x1"); d.(*frame.Delivered).Queued || c.message().Text != "x1" {
		t.Errorf("delivered %s", show(d))
	}
	w.failWrites("meta")
	if err := w.hub.Owner().ClearHome(ctx); err == nil || home() != "d" {
		t.Errorf("cleared in spite of the failing store: %v, %q", err, home())
	}
	w.healWrites("meta")
	ok(t, w.hub.Owner().ClearHome(ctx))
	w.restart()
	if e, is := deliver("x2").(*frame.Error); !is || e.Code != frame.DeviceOffline || home() != "" {
		t.Errorf("without a home channel: %v, %q", e, home())
	}
	ok(t, w.hub.Owner().Revoke(ctx, "d"))
	if err := w.hub.Owner().SetHome(ctx, "d"); !errors.Is(err, hub.ErrRevoked) {
		t.Errorf("a device that was revoked: %v", err)
	}
}
