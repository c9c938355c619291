package store

import (
	"path/filepath"
	"testing"
	"time"
)

func TestFrontUserLife(t *testing.T) {
	s := open(t, t.TempDir())
	add := func(id, name string) (added bool) {
		t.Helper()
		do(t, s, func(tx *Tx) (err error) {
			added, err = tx.AddFrontUser(&FrontUser{ID: id, Name: name, Password: "hash-1"}, t0)
			return err
		})
		return added
	}
	if !add("u1", "anna") || !add("u2", "bert") || add("u3", "anna") {
		t.Fatal("a name is not one user's")
	}
	do(t, s, func(tx *Tx) error { return tx.SeenFrontUser("u1", t0.Add(time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.RehashFrontPassword("u1", "other", "hash-2") })
	u := value[*FrontUser](t)(s.FrontUser(ctx, "anna"))
	if u.ID != "u1" || u.Password != "hash-1" || !u.CreatedAt.Equal(t0) || !u.SeenAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v", u)
	}
	do(t, s, func(tx *Tx) error { return tx.RehashFrontPassword("u1", "hash-1", "hash-2") })
	for _, user := range []string{"u1", "u2"} {
		do(t, s, func(tx *Tx) error {
			if err := tx.AddFrontToken(FrontToken{Hash: "at-" + user, Login: "l-" + user, User: user, Until: t0.Add(time.Hour)}, t0); err != nil {
				return err
			}
			return tx.ClaimFront(FrontSession, "s-"+user, user, t0)
		})
	}
	do(t, s, func(tx *Tx) error { return tx.SetFrontPassword("u1", "hash-3", t0.Add(time.Hour)) })
	if u = value[*FrontUser](t)(s.FrontUser(ctx, "anna")); u.Password != "hash-3" || !u.ChangedAt.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", u)
	}
	if value[*FrontToken](t)(s.FrontToken(ctx, "at-u1")) != nil || value[*FrontToken](t)(s.FrontToken(ctx, "at-u2")) == nil {
		t.Error("with another password other logins ended, or none")
	}
	do(t, s, func(tx *Tx) error { return tx.RemoveFrontUser("u2") })
	if value[*FrontToken](t)(s.FrontToken(ctx, "at-u2")) != nil || value[string](t)(s.FrontOwner(ctx, FrontSession, "s-u2")) != "" ||
		value[string](t)(s.FrontOwner(ctx, FrontSession, "s-u1")) != "u1" || len(value[[]*FrontUser](t)(s.FrontUsers(ctx))) != 1 {
		t.Error("more or less than the user is gone")
	}
	if !add("u4", "bert") {
		t.Error("the name is not free again")
	}
}

func TestFrontTokens(t *testing.T) {
	s := open(t, t.TempDir())
	do(t, s, func(tx *Tx) error { _, err := tx.AddFrontUser(&FrontUser{ID: "u", Name: "anna"}, t0); return err })
	add := func(hash, login, parent string, refresh bool, at time.Time) {
		t.Helper()
		do(t, s, func(tx *Tx) error {
			return tx.AddFrontToken(FrontToken{Hash: hash, Login: login, User: "u", Refresh: refresh, Until: at.Add(time.Hour), Parent: parent}, at)
		})
	}
	get := func(hash string) *FrontToken { t.Helper(); return value[*FrontToken](t)(s.FrontToken(ctx, hash)) }
	add("rt", "l1", "", true, t0)
	add("at2", "l1", "rt", false, t0)
	add("rt2", "l1", "rt", true, t0)
	if k := get("rt2"); k.Name != "anna" || k.Login != "l1" || !k.Refresh || k.Parent != "rt" || !k.SpentAt.IsZero() || !k.Until.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", k)
	}
	do(t, s, func(tx *Tx) error { return tx.SpendFrontToken("rt", t0.Add(time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.SpendFrontToken("rt", t0.Add(2*time.Minute)) })
	if k := get("rt"); !k.SpentAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("it was spent at %v", k.SpentAt)
	}
	if get("at2").Parent != "" || get("rt2").Parent != "" {
		t.Error("what it gave is not known to be used")
	}
	add("x", "l2", "", true, t0.Add(time.Second))
	if list := value[[]string](t)(s.FrontLogins(ctx, "u")); len(list) != 2 || list[0] != "l2" {
		t.Errorf("logins %v", list)
	}
	do(t, s, func(tx *Tx) error { return tx.EndFrontLogin("l1") })
	if get("rt") != nil || get("rt2") != nil || get("x") == nil {
		t.Error("more or less than the login is gone")
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(2*time.Hour)))
	if get("x") != nil {
		t.Error("a token is kept after its time")
	}
}

func TestFrontOwners(t *testing.T) {
	s := open(t, t.TempDir())
	owner := func(kind, id string) string { t.Helper(); return value[string](t)(s.FrontOwner(ctx, kind, id)) }
	do(t, s, func(tx *Tx) error { return tx.ClaimFront(FrontSession, "a", "u1", t0) })
	do(t, s, func(tx *Tx) error { return tx.ClaimFront(FrontSession, "a", "u2", t0) })
	do(t, s, func(tx *Tx) error { return tx.ClaimFront(FrontRun, "a", "u2", t0) })
	do(t, s, func(tx *Tx) error { return tx.ClaimFront(FrontResponse, "r", "u2", t0) })
	if owner(FrontSession, "a") != "u1" || owner(FrontRun, "a") != "u2" || owner(FrontJob, "a") != "" {
		t.Error("what is somebody's is not, or another's")
	}
	if set := value[map[string]bool](t)(s.FrontOwned(ctx, "u1", FrontSession)); len(set) != 1 || !set["a"] {
		t.Errorf("%v", set)
	}
	do(t, s, func(tx *Tx) error { return tx.TakeFront(FrontSession, "a", "u2", t0) })
	if owner(FrontSession, "a") != "u2" {
		t.Error("what was made anew is still the other's")
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(keepRuns+time.Hour)))
	if owner(FrontSession, "a") != "u2" || owner(FrontRun, "a") != "" || owner(FrontResponse, "r") != "u2" {
		t.Error("the wrong ones are swept")
	}
	do(t, s, func(tx *Tx) error { return tx.ForgetFront(FrontSession, "a") })
	if owner(FrontSession, "a") != "" {
		t.Error("it is not forgotten")
	}
}

func TestFrontKeys(t *testing.T) {
	s := open(t, t.TempDir())
	for _, u := range [][2]string{{"u1", "bert"}, {"u2", "anna"}} {
		do(t, s, func(tx *Tx) error {
			_, err := tx.AddFrontUser(&FrontUser{ID: u[0], Name: u[1]}, t0)
			return err
		})
	}
	for _, k := range []FrontKey{{ID: "k1", Hash: "h1", User: "u1", Label: "laptop"}, {ID: "k2", Hash: "h2", User: "u2", Until: t0.Add(time.Hour)}, {ID: "k3", Hash: "h3", User: "u1", Until: t0.Add(keepKeys)}} {
		do(t, s, func(tx *Tx) error { return tx.AddFrontKey(k, t0) })
	}
	ids := func() (text string) {
		for _, k := range value[[]*FrontKey](t)(s.FrontKeys(ctx)) {
			text += k.ID
		}
		return text
	}
	if got := ids(); got != "k2k1k3" {
		t.Errorf("keys %s", got)
	}
	k := value[*FrontKey](t)(s.FrontKey(ctx, "h1"))
	if k == nil || k.ID != "k1" || k.User != "u1" || k.Name != "bert" || k.Label != "laptop" || !k.CreatedAt.Equal(t0) || !k.Until.IsZero() || !k.UsedAt.IsZero() {
		t.Errorf("%+v", k)
	}
	if k := value[*FrontKey](t)(s.FrontKeyByID(ctx, "k2")); k == nil || !k.Until.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", k)
	}
	do(t, s, func(tx *Tx) error { return tx.UseFrontKey("k1", t0.Add(2*time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.UseFrontKey("k1", t0.Add(time.Minute)) }) // which came later
	if k := value[*FrontKey](t)(s.FrontKey(ctx, "h1")); !k.UsedAt.Equal(t0.Add(2 * time.Minute)) {
		t.Errorf("it was used at %v", k.UsedAt)
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(keepKeys+2*time.Hour)))
	if got := ids(); got != "k1k3" {
		t.Errorf("after a sweep there are %s", got)
	}
	do(t, s, func(tx *Tx) error { return tx.RemoveFrontKey("k3") })
	if value[*FrontKey](t)(s.FrontKey(ctx, "h3")) != nil || value[*FrontKey](t)(s.FrontKey(ctx, "h1")) == nil {
		t.Error("more or less than the key is gone")
	}
	do(t, s, func(tx *Tx) error { return tx.RemoveFrontUser("u1") })
	if got := ids(); got != "" || value[*FrontKey](t)(s.FrontKey(ctx, "h1")) != nil {
		t.Error("a user is gone and the key is not")
	}
}

// A login or a key that was ended after a copy was made does not come back with the copy.
func TestFrontLoginsEndWithARestore(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	s := open(t, dir)
	do(t, s, func(tx *Tx) error {
		if _, err := tx.AddFrontUser(&FrontUser{ID: "u", Name: "anna"}, t0); err != nil {
			return err
		}
		if err := tx.AddFrontKey(FrontKey{ID: "k", Hash: "key", User: "u"}, t0); err != nil {
			return err
		}
		return tx.AddFrontToken(FrontToken{Hash: "at", Login: "l", User: "u", Until: t0}, t0)
	})
	ok(t, s.Backup(ctx, filepath.Join(copied, File)))
	again := open(t, copied)
	if value[*FrontToken](t)(again.FrontToken(ctx, "at")) != nil || value[*FrontKey](t)(again.FrontKey(ctx, "key")) != nil || value[*FrontUser](t)(again.FrontUser(ctx, "anna")) == nil {
		t.Error("the login came back, or the user did not")
	}
}
