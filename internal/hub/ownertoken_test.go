package hub_test

import (
	"errors"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/hub"
)

// comesWith is a device that comes back with a token.
func (w *world) comesWith(id, secret string) *client {
	w.t.Helper()
	return w.connect(id, withToken(secret))
}

// A device whose token is replaced gets the new one when it connects, and the old one ends when it says that it has stored it.
func TestRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	c := w.pair("tel", access.PairingCode{})
	old := c.secret
	ok(t, w.hub.Owner().Rotate(ctx, "tel", nil))
	if code := c.closed(); code != int(frame.CloseGoingAway) {
		t.Errorf("the connection is closed with %d", code)
	}
	if !w.info("tel").Rotating {
		t.Error("the owner does not see that the token is being replaced")
	}
	c = w.comesWith("tel", old)
	next := c.Ready.Token
	if next == "" || next == old {
		t.Fatalf("ready gives %q", next)
	}
	c.text("m1", "hello")
	c.send(&frame.Ack{Token: true})
	until(t, "the new token to count alone", func() bool { return !w.info("tel").Rotating })
	w.open("tel", withToken(old)).refused(frame.AuthFailed, "token is wrong")
	if c := w.comesWith("tel", next); c.Ready.Token != "" || !c.Ready.Approved {
		t.Errorf("with the new token it gets %s", show(c.Ready))
	}
	if len(w.audited("device.rotated")) != 1 || len(w.audited("device.renewed")) != 1 {
		t.Error("the audit log does not tell what was done")
	}
}

// A device that gets the new token and never says so is not shut out: it may come with either, until it comes with the new one.
func TestRotateSurvivesALostAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	old := w.pair("tel", access.PairingCode{}).secret
	ok(t, w.hub.Owner().Rotate(ctx, "tel", nil))
	lost := w.comesWith("tel", old).Ready.Token
	w.restart()
	c := w.comesWith("tel", old)
	next := c.Ready.Token
	if next == "" || next == lost {
		t.Fatalf("the second time ready gives %q, the first %q", next, lost)
	}
	w.open("tel", withToken(lost)).refused(frame.AuthFailed, "token is wrong")
	if c := w.comesWith("tel", next); c.Ready.Token != "" || w.info("tel").Rotating {
		t.Errorf("with the new token it gets %s, rotating %v", show(c.Ready), w.info("tel").Rotating)
	}
	w.open("tel", withToken(old)).refused(frame.AuthFailed, "token is wrong")
	if len(w.audited("device.renewed")) != 1 {
		t.Error("the audit log does not tell that the device took its token")
	}
}

// What a device says of a token that it was not given changes nothing, and a word said twice is one.
func TestTokenKeptByWhomItWasGiven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	c := w.pair("tel", access.PairingCode{})
	for range 2 {
		c.send(&frame.Ack{Token: true})
	}
	c.text("m1", "hello")
	c = w.comesWith("tel", c.secret)
	c.send(&frame.Ack{Token: true})
	c.text("m2", "hello")
	if c = w.comesWith("tel", c.secret); c.Ready.Token != "" {
		t.Errorf("ready gives a token: %s", show(c.Ready))
	}
	app := w.connect("app")
	app.send(&frame.Ack{Token: true})
	app.send(&frame.Ping{ID: "p"})
	expect[*frame.Pong](app)
	if err := w.hub.Owner().Rotate(ctx, "app", nil); !errors.Is(err, hub.ErrNoOwnToken) {
		t.Errorf("the token of an app is rotated: %v", err)
	}
	if err := w.hub.Owner().Rotate(ctx, "nobody", nil); !errors.Is(err, hub.ErrUnknownDevice) {
		t.Errorf("nobody's token is rotated: %v", err)
	}
	ok(t, w.hub.Owner().Revoke(ctx, "tel"))
	if err := w.hub.Owner().Rotate(ctx, "tel", nil); !errors.Is(err, hub.ErrNoOwnToken) {
		t.Errorf("the token of a revoked device is rotated: %v", err)
	}
}

// A pairing code is good for nothing as soon as its device says that it has stored its token.
func TestCodeEndsWhenTheTokenIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	code := w.invite(access.PairingCode{})
	w.connect("tel", withPair(code))
	c := w.connect("tel", withPair(code))
	if c.Ready.Token == "" {
		t.Fatal("a device whose answer was lost gets no token")
	}
	c.send(&frame.Ack{Token: true})
	c.text("m1", "hello")
	w.open("tel", withPair(code)).refused(frame.AuthFailed, "pairing code")
	w.comesWith("tel", c.secret)
}

// A connection ends with the token by which it was let in, be it a device's own or an app's.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	const app = "an-app-token-that-ends"
	var tokens *access.Tokens
	w := newWorld(t, func(o *hub.Options) {
		unguarded(o)
		tokens = o.Tokens
	})
	var guest *client
	for life := time.Second; guest == nil; life *= 2 { // a busy machine may need longer to connect
		tokens.Replace([]access.Token{{Label: "app", Secret: token}, {Label: "guest", Secret: app, Expires: time.Now().Add(life)}})
		c := w.open("tab", withToken(app))
		if f, err := c.any(); err != nil {
			t.Fatal(err)
		} else if _, in := f.(*frame.Ready); in {
			guest = c
		}
	}
	paired := w.pair("tel", access.PairingCode{Life: time.Second})
	stays := w.connect("other")
	if at := w.info("tel").ExpiresAt; at == nil || time.Until(*at) > time.Second {
		t.Errorf("the owner sees that it ends at %v", at)
	}
	for _, c := range []*client{paired, guest} {
		if code := c.closed(); code != int(frame.CloseNoAccess) {
			t.Errorf("device %s is closed with %d", c.id, code)
		}
	}
	w.open("tel", own(paired)).refused(frame.AuthFailed, "has expired")
	w.open("tab", withToken(app)).refused(frame.AuthFailed, "this token expired on")
	stays.send(&frame.Ping{ID: "p"})
	expect[*frame.Pong](stays)
	if err := w.hub.Owner().Rotate(ctx, "tel", nil); !errors.Is(err, hub.ErrTokenEnded) {
		t.Errorf("an expired token is rotated without a word on its end: %v", err)
	}
	ok(t, w.hub.Owner().Rotate(ctx, "tel", new(time.Now().Add(time.Hour))))
	if c := w.comesWith("tel", paired.secret); c.Ready.Token == "" {
		t.Errorf("the device whose token the owner extended gets %s", show(c.Ready))
	}
	ok(t, w.hub.Owner().Rotate(ctx, "tel", new(time.Time{})))
	if at := w.info("tel").ExpiresAt; at != nil {
		t.Errorf("a token that never ends is shown to end at %v", at)
	}
}

// When a token of an app was used is stored, with few writes.
func TestTokenUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	began := time.Now().Truncate(time.Millisecond)
	w.connect("a")
	w.connect("b")
	w.open("c", withToken("wrong")).refused(frame.AuthFailed, "token is wrong")
	var uses map[string]time.Time
	until(t, "the use to be stored", func() bool {
		uses = value[map[string]time.Time](t)(w.store.TokenUses(ctx))
		return len(uses) > 0
	})
	if len(uses) != 1 {
		t.Errorf("uses: %v", uses)
	}
	for label, at := range uses {
		if at.Before(began) || at.After(time.Now()) {
			t.Errorf("the token %s was used at %v", label, at)
		}
	}
}
