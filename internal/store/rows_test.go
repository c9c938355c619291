package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestDeviceLife(t *testing.T) {
	s := open(t, t.TempDir())
	n := device(t, s, "tel-1")
	get := func() *Device { t.Helper(); return value[*Device](t)(s.Device(ctx, "tel-1")) }
	d := get()
	epoch := d.Epoch
	if d.N != n || epoch == "" || d.Session() != "mobile:tel-1" || !d.CreatedAt.Equal(t0) {
		t.Fatalf("device %+v", d)
	}
	d.Name, d.UserID, d.UserName, d.Label, d.TokenHash = "Phone", "anna", "Anna", "device:tel-1", "aa"
	do(t, s, func(tx *Tx) error { return tx.SaveDevice(d, t0.Add(time.Minute)) })
	if got := value[*Device](t)(s.DeviceByToken(ctx, "aa")); got == nil || got.Name != "Phone" || got.UserName != "Anna" || !got.SeenAt.Equal(t0.Add(time.Minute)) {
		t.Fatalf("after a hello %+v", got)
	}
	do(t, s, func(tx *Tx) error { return tx.RenameDevice(n, "Telefon") })
	if d = get(); d.Rights != AllRights {
		t.Errorf("a new device may do %+v only", d.Rights)
	}
	do(t, s, func(tx *Tx) error { return tx.SetRights(n, Rights{Write: true}) })
	do(t, s, func(tx *Tx) error { return tx.SaveDevice(d, t0) }) // a hello does not bring them back
	do(t, s, func(tx *Tx) error { return tx.RenameDevice(n, "Telefon") })
	do(t, s, func(tx *Tx) error { return tx.RevokeDevice(n) })
	if d = get(); d.Rights != (Rights{Write: true}) {
		t.Errorf("rights after a hello %+v", d.Rights)
	}
	if !d.Revoked || d.TokenHash != "" || d.Label != "device:tel-1" || d.Name != "Telefon" {
		t.Errorf("revoked: %+v", d)
	}
	if got := value[*Device](t)(s.DeviceByToken(ctx, "aa")); got != nil {
		t.Error("the token of a revoked device is known")
	}
	do(t, s, func(tx *Tx) error { return tx.UnbindDevice(n) })
	if d = get(); d.Revoked || d.Bound() || d.UserID != "" || d.UserName != "" || d.WasUser != "anna" || d.Owner() != "anna" {
		t.Errorf("unbound: %+v", d)
	}
	do(t, s, func(tx *Tx) error { return tx.UnbindDevice(n) })
	if d = get(); d.WasUser != "anna" {
		t.Errorf("unbound twice: %+v", d)
	}
	// Nobody is found by the token that devices without one have.
	if got := value[*Device](t)(s.DeviceByToken(ctx, "")); got != nil {
		t.Errorf("the empty token finds %+v", got)
	}
	if list := value[[]*Device](t)(s.DevicesOf(ctx, "anna")); len(list) != 0 {
		t.Errorf("devices of anna: %v", list)
	}
	if list := value[[]*Device](t)(s.DevicesOf(ctx, "")); len(list) != 0 {
		t.Errorf("devices of nobody: %v", list)
	}
	if list := value[[]*Device](t)(s.DevicesKeeping(ctx, "anna")); len(list) != 1 || list[0].ID != "tel-1" {
		t.Errorf("devices that keep something of anna's: %v", list)
	}
	if get().Epoch != epoch {
		t.Error("the life of the outbox ended without being wiped")
	}
}

// A one-time code is for the first device that uses it, until that needs it no more.
func TestInviteBelongsToItsDevice(t *testing.T) {
	s := open(t, t.TempDir())
	n := device(t, s, "tel 1")
	device(t, s, "1") // the end of the other's id
	redeem := func(device string) (done bool) {
		t.Helper()
		do(t, s, func(tx *Tx) (err error) { done, err = tx.PairingCodes().Redeem("code", device, "new", t0); return err })
		return done
	}
	for name, forget := range map[string]func(*Tx) error{
		"forgotten": func(tx *Tx) error { return tx.PairingCodes().Forget(n) },
		"unbound":   func(tx *Tx) error { return tx.UnbindDevice(n) },
		"revoked":   func(tx *Tx) error { return tx.RevokeDevice(n) },
	} {
		do(t, s, func(tx *Tx) error {
			return tx.PairingCodes().Add(PairingCode{Hash: "code", Expires: t0.Add(time.Minute)})
		})
		do(t, s, func(tx *Tx) error {
			return tx.PairingCodes().Add(PairingCode{Hash: "another", Expires: t0.Add(time.Minute)})
		})
		if value[bool](t)(s.PairingCodes().Redeemed(ctx, "tel 1")) || !redeem("tel 1") || !redeem("tel 1") || redeem("1") || !value[bool](t)(s.PairingCodes().Redeemed(ctx, "tel 1")) || value[bool](t)(s.PairingCodes().Redeemed(ctx, "1")) {
			t.Errorf("%s: the code is not its device's alone", name)
		}
		do(t, s, forget)
		if redeem("tel 1") || value[bool](t)(s.PairingCodes().Redeemed(ctx, "tel 1")) {
			t.Errorf("%s: the code is still good", name)
		}
		if i, err := s.PairingCodes().Valid(ctx, "another", "tel 1", t0); err != nil || i == nil || i.Device != "" {
			t.Errorf("%s: a code that nobody used is gone (%v)", name, err)
		}
	}
}

func TestDeviceIDIsTakenOnce(t *testing.T) {
	s := open(t, t.TempDir())
	device(t, s, "tel-1")
	if err := s.Do(func(tx *Tx) error { return tx.AddDevice(&Device{ID: "tel-1"}, t0) }); err == nil {
		t.Error("two devices have one id")
	}
}

func TestSentAndFloorOnlyGrow(t *testing.T) {
	s := open(t, t.TempDir())
	n := device(t, s, "d")
	for _, seq := range []int64{5, 3, 9, 1} {
		do(t, s, func(tx *Tx) error {
			if err := tx.Sent(n, seq, t0); err != nil {
				return err
			}
			return tx.Forget(n, seq)
		})
	}
	if d := value[*Device](t)(s.Device(ctx, "d")); d.Sent != 9 || d.Floor != 9 {
		t.Errorf("sent %d floor %d, want 9 and 9", d.Sent, d.Floor)
	}
}

// A wipe drops everything of one device and nothing of another; what it used stays known, so that
// nothing comes twice.
func TestWipe(t *testing.T) {
	s := open(t, t.TempDir())
	var devs [2]int64
	for i := range devs {
		devs[i] = device(t, s, fmt.Sprint("d", i))
		do(t, s, func(tx *Tx) error {
			n, _, err := tx.Accept(devs[i], "m1", Waiting, []byte("{}"), fmt.Sprint("in", i), t0)
			if err != nil {
				return err
			}
			return errors.Join(
				tx.Append(devs[i], 1, KindMessage, []byte("1"), fmt.Sprint("out", i), t0),
				tx.SetOpen(devs[i], OpenMessage{ID: "r", N: n}),
				tx.AddCard(Card{ID: fmt.Sprint("c", i), Device: devs[i], Body: []byte("{}"), Expires: t0}))
		})
	}
	before := value[*Device](t)(s.Device(ctx, "d0"))
	var epoch string
	do(t, s, func(tx *Tx) (err error) { epoch, err = tx.WipeDevice(devs[0], 7, t0); return err })
	after := value[*Device](t)(s.Device(ctx, "d0"))
	if epoch == before.Epoch || after.Epoch != epoch || after.Floor != 7 || after.Sent != 7 {
		t.Errorf("after the wipe %+v", after)
	}
	if in, out := value[[]Entry](t)(s.Inbox(ctx, devs[0])), seqs(t, s, devs[0]); len(in)+len(out) != 0 {
		t.Errorf("left: %v %v", in, out)
	}
	if open, cards := value[[]OpenMessage](t)(s.OpenMessages(ctx, devs[0])), value[[]Card](t)(s.Cards(ctx, devs[0])); len(open)+len(cards) != 0 {
		t.Errorf("left: %v %v", open, cards)
	}
	if !value[bool](t)(s.Seen(ctx, devs[0], "m1")) {
		t.Error("the message id is forgotten: the phone's retry would become a new turn")
	}
	if c, found, err := s.Card(ctx, "c0"); err != nil || !found || !c.Expired {
		t.Errorf("card %+v found %v (%v): an answer to it must meet an expired card", c, found, err)
	}
	if h := value[map[string]bool](t)(s.Hashes(ctx)); len(h) != 2 || !h["in1"] || !h["out1"] {
		t.Errorf("files in use %v, want those of the other device", h)
	}
	if work := value[[]string](t)(s.Work(ctx)); !slices.Equal(work, []string{"d1"}) {
		t.Errorf("work %v", work)
	}
}

// A message can be quoted while it waits for its device, and for a while after that.
func TestQuote(t *testing.T) {
	s := open(t, t.TempDir())
	dev, other := device(t, s, "d"), device(t, s, "e")
	seq := int64(0)
	add := func(dev int64, body string, at time.Time) {
		t.Helper()
		seq++
		do(t, s, func(tx *Tx) error { return tx.Append(dev, seq, KindMessage, []byte(body), "", at) })
	}
	message := func(id, text string) string {
		return fmt.Sprintf(`{"message":{"id":%q,"text":%q,"final":true}}`, id, text)
	}
	forget := func() {
		t.Helper()
		do(t, s, func(tx *Tx) error { return errors.Join(tx.Forget(dev, seq), tx.Forget(other, seq)) })
	}
	want := func(dev int64, id, text string) {
		t.Helper()
		if got := value[string](t)(s.Quote(ctx, dev, id)); got != text {
			t.Errorf("of %s is kept %q, want %q", id, got, text)
		}
	}
	for i, c := range []struct{ text, kept string }{
		{"short", "short"}, {"", ""},
		{strings.Repeat("👍", 500), strings.Repeat("👍", 500)},
		{strings.Repeat("👍", 1500), strings.Repeat("👍", 500)},
		{strings.Repeat("é", 500) + "x", strings.Repeat("é", 500)},
	} {
		id := fmt.Sprint("m", i)
		add(dev, message(id, c.text), t0)
		want(dev, id, c.kept)
		want(other, id, "")
		forget()
		want(dev, id, c.kept)
		want(other, id, "")
	}
	// It is the last word that counts, acknowledged or not.
	add(dev, message("edited", "one"), t0)
	add(dev, message("edited", "two"), t0)
	want(dev, "edited", "two")
	forget()
	want(dev, "edited", "two")
	add(dev, message("edited", "three"), t0)
	want(dev, "edited", "three")
	// What cannot be read is no reason to keep it.
	add(dev, `{"message":{"id":"broken"`, t0)
	add(dev, `{"message":{}}`, t0)
	want(dev, "broken", "")
	forget()
	want(dev, "edited", "three")
	if n, _, _, err := s.OutboxBounds(ctx, dev); n > 0 || err != nil {
		t.Errorf("%d entries are left, %v", n, err)
	}
	for i := range keepQuotes + 10 {
		add(dev, message(fmt.Sprint(i), "text"), t0.Add(time.Duration(i)*time.Second))
	}
	add(other, message("x", "old"), t0)
	forget()
	rule := Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}
	ok(t, s.Sweep(ctx, rule, t0.Add(time.Hour)))
	want(dev, "9", "")
	want(dev, "10", "text")
	want(other, "x", "old")
	ok(t, s.Sweep(ctx, rule, t0.Add(time.Hour+time.Second)))
	want(other, "x", "")
	do(t, s, func(tx *Tx) error { _, err := tx.WipeDevice(dev, 0, t0); return err })
	want(dev, fmt.Sprint(keepQuotes), "")
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Quote(cancelled, dev, "m"); err == nil {
		t.Error("a reader whose time is over got an answer")
	}
}

func TestMeta(t *testing.T) {
	s := open(t, t.TempDir())
	if v := value[[]byte](t)(s.Meta(ctx, "k")); v != nil {
		t.Errorf("%q", v)
	}
	do(t, s, func(tx *Tx) error { return tx.AddMeta("k", []byte("1")) })
	do(t, s, func(tx *Tx) error { return tx.AddMeta("k", []byte("2")) })
	if v := value[[]byte](t)(s.Meta(ctx, "k")); string(v) != "1" {
		t.Errorf("added twice: %q", v)
	}
	do(t, s, func(tx *Tx) error { return tx.SetMeta("k", []byte("3")) })
	if v := value[[]byte](t)(s.Meta(ctx, "k")); string(v) != "3" {
		t.Errorf("set: %q", v)
	}
}

// Open messages are kept with how far they have come, until they have their final.
func TestOpenMessages(t *testing.T) {
	s := open(t, t.TempDir())
	dev := device(t, s, "d")
	for _, text := range []string{"a", "a b", "a b c"} {
		do(t, s, func(tx *Tx) error {
			return tx.SetOpen(dev, OpenMessage{ID: "r1", N: 4, ReplyTo: "m", Text: text})
		})
	}
	do(t, s, func(tx *Tx) error { return tx.SetOpen(dev, OpenMessage{ID: "r2"}) })
	if list := value[[]OpenMessage](t)(s.OpenMessages(ctx, dev)); len(list) != 2 || list[0] != (OpenMessage{ID: "r1", N: 4, ReplyTo: "m", Text: "a b c"}) {
		t.Errorf("open messages %+v", list)
	}
	do(t, s, func(tx *Tx) error { return tx.CloseOpen(dev, "r1") })
	if list := value[[]OpenMessage](t)(s.OpenMessages(ctx, dev)); len(list) != 1 || list[0].ID != "r2" {
		t.Errorf("open messages %+v", list)
	}
}

// Names that an earlier version stored are read without what does not show as itself.
func TestStoredNamesAreClean(t *testing.T) {
	s := open(t, t.TempDir())
	d := &Device{ID: "d", Name: "Anna\u202e's\n phone", Platform: "an\u200bdroid", App: "app\x1b[2J", UserID: "anna", UserName: "\u2066Anna 👩\u200d🚀"}
	do(t, s, func(tx *Tx) error { return tx.AddDevice(d, t0) })
	got := value[*Device](t)(s.Device(ctx, "d"))
	if got.Name != "Anna's phone" || got.Platform != "android" || got.App != "app[2J" || got.UserName != "Anna 👩\u200d🚀" {
		t.Errorf("%+v", got)
	}
}
