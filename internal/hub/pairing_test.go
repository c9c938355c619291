package hub_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/audit"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/store"
)

// strict is a hub whose users must be approved.
func strict(o *hub.Options) { o.AllowAllUsers = false }

// unguarded is strict, and takes any number of wrong codes: its clock is an hour later at each look.
func unguarded(o *hub.Options) {
	strict(o)
	var looks atomic.Int64
	began := time.Now()
	o.Guard = access.NewGuard(func() time.Time { return began.Add(time.Duration(looks.Add(1)) * time.Hour) })
}

// pair connects a device by a pairing code.
func (w *world) pair(id string, of access.PairingCode, opts ...option) *client {
	w.t.Helper()
	return w.connect(id, append([]option{withPair(w.invite(of))}, opts...)...)
}

// own is how a paired device comes back: with its own token.
func own(c *client) option { return withToken(c.secret) }

// info is a device as its owner sees it.
func (w *world) info(id string) hub.DeviceInfo {
	w.t.Helper()
	for _, d := range value[[]hub.DeviceInfo](w.t)(w.hub.Owner().Devices(ctx)) {
		if d.ID == id {
			return d
		}
	}
	w.t.Fatalf("there is no device %s", id)
	return hub.DeviceInfo{}
}

// refused expects that a hello is refused, with words in the reason.
func (c *client) refused(code frame.Code, words string) {
	c.w.t.Helper()
	e := expect[*frame.Error](c)
	if closed := c.closed(); e.Code != code || !strings.Contains(e.Message, words) || closed != int(frame.CloseNoAccess) {
		c.w.t.Errorf("device %s is refused with %s and %d, want %s with %q", c.id, show(e), closed, code, words)
	}
}

// audited are the entries of the audit log with this action, newest first.
func (w *world) audited(action string) (list []store.AuditEntry) {
	w.t.Helper()
	for _, e := range value[[]store.AuditEntry](w.t)(w.store.Audit(ctx, store.AuditFilter{}, 1000)) {
		if e.Action == action {
			list = append(list, e)
		}
	}
	return list
}

// A code that names no user makes a new one, approved; the first device of a server needs nothing else.
func TestCodeMakesANewUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	first := w.pair("tel", access.PairingCode{})
	if !first.Ready.Approved || first.Ready.Token == "" || w.info("tel").User != "tel" {
		t.Fatalf("the first device gets %s, and is %+v", show(first.Ready), w.info("tel"))
	}
	second := w.pair("tab", access.PairingCode{}, withUser("anna"))
	if !second.Ready.Approved || w.info("tab").User != "anna" {
		t.Fatalf("a device of a new user gets %s, and is %+v", show(second.Ready), w.info("tab"))
	}
	if !w.pairing.Approved("anna") || !w.pairing.Approved("tel") {
		t.Error("the new users are not approved")
	}
	paired := w.hub.Owner().Paired()
	if len(paired) != 2 || paired[1].ID != "tab" || paired[1].User != "anna" || paired[1].Code == "" {
		t.Errorf("who redeemed codes: %+v", paired)
	}
}

// Whoever is known in any way cannot be had with a code that does not name them. The code stays good for a new user.
func TestPlainCodeIsNoWayIntoAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *hub.Options) {
		unguarded(o)
		o.AllowedUsers = access.ParseList("listed")
		o.Named = access.ParseList("user:routed,named-device")
	})
	w.connect("d", withUser("listed"))
	w.pair("tel", access.PairingCode{User: "anna"})
	value[access.User](t)(w.pairing.ApproveUser("approved", ""))
	w.pair("lost", access.PairingCode{User: "carla"})
	ok(t, w.hub.Owner().Revoke(ctx, "lost"))
	do := func(f func(*store.Tx) error) { t.Helper(); ok(t, w.store.Do(f)) }
	do(func(tx *store.Tx) error {
		_, err := tx.AddFrontUser(&store.FrontUser{ID: "u1", Name: "api-user"}, time.Now())
		return err
	})
	code := w.invite(access.PairingCode{})
	for i, user := range []string{"anna", "approved", "listed", "routed", "carla", "api-user", "API-User"} {
		w.open(fmt.Sprint("thief-", i), withPair(code), withUser(user)).refused(frame.Forbidden, "hermes-mobile pair --user "+user)
	}
	// Without a user it is the device id, which must not be a way around; nor may a device come that the settings name.
	for _, id := range []string{"anna", "approved", "api-user", "named-device"} {
		w.open(id, withPair(code)).refused(frame.Forbidden, "exists already")
	}
	for _, d := range value[[]hub.DeviceInfo](t)(w.hub.Owner().Devices(ctx)) {
		if strings.HasPrefix(d.ID, "thief") || d.ID == "anna" || d.ID == "named-device" {
			t.Errorf("stored %+v", d)
		}
	}
	if c := w.connect("new", withPair(code), withUser("dora")); !c.Ready.Approved {
		t.Error("the code is not good any more")
	}
	w.pair("named-device", access.PairingCode{User: "anna"}) // the owner says whose it is
}

// Trying names with a code is guessing.
func TestNamesAreNotTriedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.pair("tel", access.PairingCode{User: "anna"})
	code := w.invite(access.PairingCode{})
	for i := range 10 {
		w.open(fmt.Sprint("t", i), withPair(code), withUser("anna")).refused(frame.Forbidden, "exists already")
	}
	e := expect[*frame.Error](w.open("t", withPair(code), withUser("anna")))
	if e.Code != frame.RateLimited {
		t.Errorf("after ten tries: %s", show(e))
	}
}

// A code that names a user is for that user, whether the device says who it is or not, and the device stays that user's.
func TestCodeForAUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.pair("tel", access.PairingCode{}, withUser("anna"))
	code := w.invite(access.PairingCode{User: "anna"})
	w.open("tab", withPair(code), withUser("bert")).refused(frame.Forbidden, "for another user")
	tab := w.connect("tab", withPair(code)) // it says nothing
	laptop := w.pair("laptop", access.PairingCode{User: "anna"}, withUser("anna"))
	for _, c := range []*client{tab, laptop} {
		if d := w.info(c.id); d.User != "anna" || !c.Ready.Approved {
			t.Errorf("%s is %+v", c.id, d)
		}
	}
	for range 2 {
		again := w.connect("tab", own(tab))
		if d := w.info("tab"); d.User != "anna" || !again.Ready.Approved {
			t.Errorf("with its own token it is %+v", d)
		}
		w.restart()
	}
	// Its token lets it be nobody else who is known.
	w.pair("other", access.PairingCode{}, withUser("bert"))
	value[access.User](t)(w.pairing.ApproveUser("carla", ""))
	for _, user := range []string{"bert", "carla"} {
		w.open("tab", own(tab), withUser(user)).refused(frame.Forbidden, "another token")
	}
	if c := w.connect("tab", own(tab), withUser("newcomer")); c.Ready.Approved {
		t.Error("a new name is approved")
	}
	w.open("tab", own(tab), withUser("anna")).refused(frame.Forbidden, "another token") // it left of its own will
}

// A code may be made for a user whom nobody knows yet. It is not, where devices that nobody approved wait under that name: they
// would be let in with it.
func TestCodeForAUserWithStrangers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	code := w.invite(access.PairingCode{User: "anna"})
	squatter := w.connect("squatter", withUser("anna"))
	if _, _, _, err := w.hub.Owner().Invite(ctx, access.PairingCode{User: "anna"}, time.Minute); !errors.Is(err, access.ErrUnapprovedDevices) {
		t.Errorf("another code for anna: %v", err)
	}
	w.open("tel", withPair(code)).refused(frame.Forbidden, "not approved")
	if w.pairing.Approved("anna") {
		t.Fatal("the squatter's user is approved")
	}
	squatter.send(&frame.Text{ID: "m1", Text: "let me in"})
	if m := squatter.message(); !strings.Contains(m.Text, "not approved") {
		t.Errorf("the squatter got %s", show(m))
	}
	ok(t, w.hub.Owner().Revoke(ctx, "squatter"))
	if c := w.connect("tel", withPair(code)); !c.Ready.Approved {
		t.Errorf("after the squatter is revoked: %s", show(c.Ready))
	}
	if _, _, _, err := w.hub.Owner().Invite(ctx, access.PairingCode{User: "no id"}, time.Minute); !errors.Is(err, access.ErrBadUser) {
		t.Errorf("a code for what is no user: %v", err)
	}
}

// Many devices redeem one code at the same moment: one of them is in.
func TestOneCodeAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	for round := range 10 {
		code := w.invite(access.PairingCode{})
		in := w.race(func(i int) *client { return w.open(fmt.Sprintf("d%d-%d", round, i), withPair(code)) }, 4)
		if in != 1 {
			t.Fatalf("%d devices are in with one code", in)
		}
	}
}

// Many devices make the same new user at the same moment, each with a code of its own: one of them is that user.
func TestOneNewUserAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	for round := range 10 {
		user := fmt.Sprint("user", round)
		codes := []string{w.invite(access.PairingCode{}), w.invite(access.PairingCode{}), w.invite(access.PairingCode{})}
		in := w.race(func(i int) *client {
			if i == 3 { // an app token is no way in either
				return w.open(fmt.Sprintf("app%d", round), withUser(user))
			}
			return w.open(fmt.Sprintf("d%d-%d", round, i), withPair(codes[i]), withUser(user))
		}, 4)
		if in != 1 {
			t.Fatalf("%d devices are the new user %s", in, user)
		}
	}
}

// race says hello at the same moment, and counts those that are let in.
func (w *world) race(open func(i int) *client, n int) (in int) {
	w.t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f, err := open(i).any()
			if _, ready := f.(*frame.Ready); ready && err == nil {
				mu.Lock()
				in++
				mu.Unlock()
			}
		})
	}
	close(start)
	wg.Wait()
	return in
}

// A code for a user is redeemed while the user is revoked: whatever comes first, the user is out in the end.
func TestCodeWhileItsUserIsRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unguarded)
	for round := range 20 {
		user := fmt.Sprint("user", round)
		codes := []string{w.invite(access.PairingCode{User: user}), w.invite(access.PairingCode{User: user})}
		if round%2 == 0 { // a user with a device, and one whom only the approval names
			w.connect(fmt.Sprint("first", round), withPair(w.invite(access.PairingCode{User: user})))
		} else {
			value[access.User](t)(w.pairing.ApproveUser(user, ""))
		}
		var wg sync.WaitGroup
		for i, code := range codes {
			wg.Go(func() {
				c := w.open(fmt.Sprintf("d%d-%d", round, i), withPair(code))
				if _, err := c.any(); err != nil {
					w.t.Errorf("%v", err)
				}
			})
		}
		wg.Go(func() { ok(t, w.hub.Owner().RevokeUser(ctx, user)) })
		wg.Wait()
		if w.pairing.Approved(user) {
			t.Fatalf("round %d: the user is approved again", round)
		}
		for i, code := range codes { // whoever was in before is out, and the codes are good for nothing
			w.open(fmt.Sprintf("d%d-%d", round, i), withPair(code)).refused(frame.AuthFailed, "pairing code")
		}
	}
}

// The answer to a code is lost and the device comes again: only as the user who it was, and not after that user is revoked.
func TestCodeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.pair("other", access.PairingCode{}, withUser("bert"))
	code := w.invite(access.PairingCode{})
	first := w.connect("tel", withPair(code), withUser("anna"))
	w.open("tel", withPair(code), withUser("bert")).refused(frame.Forbidden, "exists already")
	again := w.connect("tel", withPair(code))
	if again.Ready.Token == first.Ready.Token || w.info("tel").User != "anna" {
		t.Errorf("again %s, %+v", show(again.Ready), w.info("tel"))
	}
	ok(t, w.hub.Owner().RevokeUser(ctx, "anna"))
	w.open("tel", withPair(code), withUser("anna")).refused(frame.AuthFailed, "pairing code")
	if w.pairing.Approved("anna") {
		t.Error("a used code approves a revoked user")
	}
	if c := w.connect("tel", own(again)); c.Ready.Approved {
		t.Errorf("the device of a revoked user gets %s", show(c.Ready))
	}
}

// Nobody is paired while the pairing files cannot be read: who is known cannot be told.
func TestCodeWhileThePairingFilesAreDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	value[access.User](t)(w.pairing.ApproveUser("anna", ""))
	code := w.invite(access.PairingCode{})
	heal := w.damagePairing()
	c := w.open("tel", withPair(code), withUser("anna"))
	if e := expect[*frame.Error](c); e.Code != frame.Internal || c.closed() != int(frame.CloseTryLater) {
		t.Errorf("refused with %s", show(e))
	}
	heal()
	w.open("tel", withPair(code), withUser("anna")).refused(frame.Forbidden, "exists already")
}

// What is done with codes is recorded, by whom and from where, and never the code.
func TestPairingIsRecorded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	by := audit.By{Actor: audit.ActorSocket, Origin: "uid 1000"}
	code, name, _, err := w.hub.Owner().Invite(audit.With(ctx, by), access.PairingCode{User: "anna", Trusted: true}, time.Minute)
	ok(t, err)
	made := w.audited("pair.code")
	if len(made) != 1 || made[0].Actor != "socket" || made[0].Origin != "uid 1000" || made[0].Subject != "anna" || !strings.Contains(made[0].Detail, "trusted") {
		t.Errorf("the code is recorded as %+v", made)
	}
	w.connect("tel", withPair(code))
	paired := w.audited("device.paired")
	if len(paired) != 1 || paired[0].Actor != "code" || paired[0].Origin != "127.0.0.1" || paired[0].Subject != "tel" || !strings.Contains(paired[0].Detail, "anna") {
		t.Errorf("the device is recorded as %+v", paired)
	}
	if list := w.hub.Owner().Paired(); len(list) != 1 || list[0].Code != name {
		t.Errorf("the code %s was redeemed by %+v", name, list)
	}
	w.connect("app", withUser("bert"))
	if added := w.audited("device.added"); len(added) != 1 || added[0].Actor != "device:app" || !strings.Contains(added[0].Detail, "main") {
		t.Errorf("the device with an app token is recorded as %+v", added)
	}
	w.connect("app", withUser("bert"))
	if n := len(w.audited("device.added")); n != 1 {
		t.Errorf("recorded %d times", n)
	}
	for _, e := range value[[]store.AuditEntry](t)(w.store.Audit(ctx, store.AuditFilter{}, 100)) {
		if strings.Contains(fmt.Sprintf("%+v", e), code) {
			t.Errorf("the code is in %+v", e)
		}
	}
	ok(t, w.hub.Owner().RevokeUser(audit.With(ctx, by), "anna"))
	if revoked := w.audited("user.revoked"); len(revoked) != 1 || revoked[0].Subject != "anna" || revoked[0].Actor != "socket" {
		t.Errorf("the revocation is recorded as %+v", revoked)
	}
}

// An approval is recorded once, whether it was made here or found in the pairing files.
func TestApprovalIsRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	c := w.connect("tel", withUser("anna"))
	c.send(&frame.Text{ID: "m1", Text: "let me in"})
	c.message()
	pending, _, err := w.pairing.List()
	ok(t, err)
	by := audit.By{Actor: audit.ActorAdmin, Origin: "192.0.2.1"}
	user := value[access.User](t)(w.hub.Owner().ApproveUser(audit.With(ctx, by), pending[0].RequestID))
	ok(t, w.hub.Owner().SawApproval(ctx, user.UserID)) // as the watcher reports it
	if list := w.audited("user.approved"); len(list) != 1 || list[0].Actor != "admin" || list[0].Subject != "anna" {
		t.Errorf("recorded %+v", list)
	}
	ok(t, w.hub.Owner().SawApproval(ctx, "bert")) // of Hermes
	if list := w.audited("user.approved"); len(list) != 2 || list[0].Actor != "server" || list[0].Subject != "bert" {
		t.Errorf("recorded %+v", list)
	}
}

// Unbinding takes the user away. The device comes back as that user, by a code or by asking anew; nobody else may have what is
// kept for it, unless the owner names them.
func TestUnbindTakesTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	tel := w.pair("tel", access.PairingCode{}, withUser("anna"))
	epoch := tel.Ready.Resume.Epoch
	tel.drop()
	w.post("tel", agent.Say{ID: "s1", Text: "for anna's eyes", Final: true})
	ok(t, w.hub.Owner().SetHome(ctx, "tel"))
	ok(t, w.hub.Owner().Unbind(ctx, "tel"))
	if d := w.info("tel"); d.User != "" || d.WasUser != "anna" || d.Token != "" || d.Approved {
		t.Errorf("unbound it is %+v", d)
	}
	if w.pairing.Approved("anna") {
		t.Error("the user is approved without a device")
	}
	w.open("tel", own(tel)).refused(frame.AuthFailed, "token is wrong")
	// With an app token: as anna it asks anew; as anybody else it may not have the id.
	w.open("tel", withUser("thief")).refused(frame.Forbidden, "another user's")
	w.open("tel").refused(frame.Forbidden, "another user's")
	w.open("tel", withPair(w.invite(access.PairingCode{})), withUser("thief")).refused(frame.Forbidden, "another user's")
	if _, err := w.hub.Owner().Deliver(ctx, "test", &frame.Deliver{To: "tel", Text: "x"}); err != nil {
		t.Error(err)
	}
	// With a code it is anna's again, and what waited comes.
	back := w.pair("tel", access.PairingCode{}, withUser("anna"))
	if !back.Ready.Approved || back.Ready.Resume.Epoch != epoch {
		t.Errorf("back with %s", show(back.Ready))
	}
	if m := back.message(); m.Text != "for anna's eyes" {
		t.Errorf("got %s", show(m))
	}
	back.drop()
	w.post("tel", agent.Say{ID: "s2", Text: "another for anna", Final: true})
	// The owner gives the device to somebody else: nothing of anna's is left on it.
	ok(t, w.hub.Owner().Unbind(ctx, "tel"))
	bert := w.pair("tel", access.PairingCode{User: "bert"})
	if r := bert.Ready.Resume; r.Epoch == epoch || r.To >= r.From {
		t.Errorf("bert gets %s", show(bert.Ready))
	}
	bert.quiet()
	if home, err := w.hub.Owner().Home(ctx); err != nil || home != nil {
		t.Errorf("the home channel is %+v (%v)", home, err)
	}
	w.restart()
	bert = w.connect("tel", own(bert))
	bert.quiet()
}

// With an app token an unbound device asks anew for the user it had; whoever has that user's other devices goes on.
func TestUnbindWithAnAppToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	value[access.User](t)(w.pairing.ApproveUser("tel", ""))
	tel := w.connect("tel")
	tel.text("m1", "hello")
	tel.drop()
	w.post("tel", agent.Say{ID: "s1", Text: "for the approved one", Final: true})
	ok(t, w.hub.Owner().Unbind(ctx, "tel"))
	c := w.connect("tel", withToken(extraToken))
	if r := c.Ready.Resume; r.To >= r.From {
		t.Errorf("any app token gets what waits: %+v", r)
	}
	if c.Ready.Approved {
		t.Fatal("any app token takes the approved user")
	}
	c.send(&frame.Text{ID: "m2", Text: "me again"})
	if m := c.message(); !strings.Contains(m.Text, "pairing code is") || m.Seq != 0 {
		t.Errorf("got %s", show(m))
	}
	// A user with several devices keeps the approval and the others.
	phone := w.pair("phone", access.PairingCode{}, withUser("anna"))
	w.pair("tab", access.PairingCode{User: "anna"})
	ok(t, w.hub.Owner().Unbind(ctx, "tab"))
	phone.text("m1", "still here")
	for _, tok := range []string{token, extraToken} {
		w.open("tab", withToken(tok), withUser("anna")).refused(frame.Forbidden, "another token")
	}
	w.open("tab", withPair(w.invite(access.PairingCode{})), withUser("anna")).refused(frame.Forbidden, "pair --user anna")
	if c := w.pair("tab", access.PairingCode{User: "anna"}); !c.Ready.Approved {
		t.Errorf("back with %s", show(c.Ready))
	}
	if list := w.audited("device.unbound"); len(list) != 2 || list[0].Subject != "tab" || !strings.Contains(list[0].Detail, "anna") {
		t.Errorf("recorded %+v", list)
	}
}

// What waits for an unbound device goes with the approval of its user.
func TestUnboundAndRevoked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.pair("phone", access.PairingCode{}, withUser("anna"))
	tab := w.pair("tab", access.PairingCode{User: "anna"})
	tab.drop()
	w.post("tab", agent.Say{ID: "s1", Text: "for anna", Final: true})
	ok(t, w.hub.Owner().Unbind(ctx, "tab"))
	ok(t, w.hub.Owner().RevokeUser(ctx, "anna"))
	if d := w.info("tab"); d.Waiting != 0 {
		t.Errorf("%d frames wait for a user who is out", d.Waiting)
	}
	if err := w.hub.Owner().Join(ctx, "tab", "phone"); err == nil {
		t.Error("an unbound device joins a conversation")
	}
}
