package store

import (
	"path/filepath"
	"testing"
	"time"
)

func TestAPIUserLife(t *testing.T) {
	s := open(t, t.TempDir())
	add := func(id, name string) (added bool) {
		t.Helper()
		do(t, s, func(tx *Tx) (err error) {
			added, err = tx.API().AddUser(&APIUser{ID: id, Name: name, Password: "hash-1"}, t0)
			return err
		})
		return added
	}
	if !add("u1", "anna") || !add("u2", "bert") || add("u3", "anna") {
		t.Fatal("a name is not one user's")
	}
	do(t, s, func(tx *Tx) error { return tx.API().SeenUser("u1", t0.Add(time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.API().RehashPassword("u1", "other", "hash-2") })
	u := value[*APIUser](t)(s.API().User(ctx, "anna"))
	if u.ID != "u1" || u.Password != "hash-1" || !u.CreatedAt.Equal(t0) || !u.SeenAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("%+v", u)
	}
	do(t, s, func(tx *Tx) error { return tx.API().RehashPassword("u1", "hash-1", "hash-2") })
	for _, user := range []string{"u1", "u2"} {
		do(t, s, func(tx *Tx) error {
			if err := tx.API().AddToken(APIToken{Hash: "at-" + user, Login: "l-" + user, User: user, Until: t0.Add(time.Hour)}, t0); err != nil {
				return err
			}
			return tx.API().Claim(APISession, "s-"+user, user, t0)
		})
	}
	do(t, s, func(tx *Tx) error { return tx.API().SetPassword("u1", "hash-3", t0.Add(time.Hour)) })
	if u = value[*APIUser](t)(s.API().User(ctx, "anna")); u.Password != "hash-3" || !u.ChangedAt.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", u)
	}
	if value[*APIToken](t)(s.API().Token(ctx, "at-u1")) != nil || value[*APIToken](t)(s.API().Token(ctx, "at-u2")) == nil {
		t.Error("with another password other logins ended, or none")
	}
	do(t, s, func(tx *Tx) error { return tx.API().RemoveUser("u2") })
	if value[*APIToken](t)(s.API().Token(ctx, "at-u2")) != nil || value[string](t)(s.API().Owner(ctx, APISession, "s-u2")) != "" ||
		value[string](t)(s.API().Owner(ctx, APISession, "s-u1")) != "u1" || len(value[[]*APIUser](t)(s.API().Users(ctx))) != 1 {
		t.Error("more or less than the user is gone")
	}
	if !add("u4", "bert") {
		t.Error("the name is not free again")
	}
}

func TestAPITokens(t *testing.T) {
	s := open(t, t.TempDir())
	do(t, s, func(tx *Tx) error { _, err := tx.API().AddUser(&APIUser{ID: "u", Name: "anna"}, t0); return err })
	add := func(hash, login, parent string, refresh bool, at time.Time) {
		t.Helper()
		do(t, s, func(tx *Tx) error {
			return tx.API().AddToken(APIToken{Hash: hash, Login: login, User: "u", Refresh: refresh, Until: at.Add(time.Hour), Parent: parent}, at)
		})
	}
	get := func(hash string) *APIToken { t.Helper(); return value[*APIToken](t)(s.API().Token(ctx, hash)) }
	add("rt", "l1", "", true, t0)
	add("at2", "l1", "rt", false, t0)
	add("rt2", "l1", "rt", true, t0)
	if k := get("rt2"); k.Name != "anna" || k.Login != "l1" || !k.Refresh || k.Parent != "rt" || !k.SpentAt.IsZero() || !k.Until.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", k)
	}
	do(t, s, func(tx *Tx) error { return tx.API().SpendToken("rt", t0.Add(time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.API().SpendToken("rt", t0.Add(2*time.Minute)) })
	if k := get("rt"); !k.SpentAt.Equal(t0.Add(time.Minute)) {
		t.Errorf("it was spent at %v", k.SpentAt)
	}
	if get("at2").Parent != "" || get("rt2").Parent != "" {
		t.Error("what it gave is not known to be used")
	}
	add("x", "l2", "", true, t0.Add(time.Second))
	if list := value[[]string](t)(s.API().Logins(ctx, "u")); len(list) != 2 || list[0] != "l2" {
		t.Errorf("logins %v", list)
	}
	do(t, s, func(tx *Tx) error { return tx.API().EndLogin("l1") })
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
	owner := func(kind, id string) string { t.Helper(); return value[string](t)(s.API().Owner(ctx, kind, id)) }
	do(t, s, func(tx *Tx) error { return tx.API().Claim(APISession, "a", "u1", t0) })
	do(t, s, func(tx *Tx) error { return tx.API().Claim(APISession, "a", "u2", t0) })
	do(t, s, func(tx *Tx) error { return tx.API().Claim(APIRun, "a", "u2", t0) })
	do(t, s, func(tx *Tx) error { return tx.API().Claim(APIResponse, "r", "u2", t0) })
	if owner(APISession, "a") != "u1" || owner(APIRun, "a") != "u2" || owner(APIJob, "a") != "" {
		t.Error("what is somebody's is not, or another's")
	}
	if set := value[map[string]bool](t)(s.API().Owned(ctx, "u1", APISession)); len(set) != 1 || !set["a"] {
		t.Errorf("%v", set)
	}
	do(t, s, func(tx *Tx) error { return tx.API().Take(APISession, "a", "u2", t0) })
	if owner(APISession, "a") != "u2" {
		t.Error("what was made anew is still the other's")
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(keepRuns+time.Hour)))
	if owner(APISession, "a") != "u2" || owner(APIRun, "a") != "" || owner(APIResponse, "r") != "u2" {
		t.Error("the wrong ones are swept")
	}
	do(t, s, func(tx *Tx) error { return tx.API().Forget(APISession, "a") })
	if owner(APISession, "a") != "" {
		t.Error("it is not forgotten")
	}
}

func TestFrontKeys(t *testing.T) {
	s := open(t, t.TempDir())
	for _, u := range [][2]string{{"u1", "bert"}, {"u2", "anna"}} {
		do(t, s, func(tx *Tx) error {
			_, err := tx.API().AddUser(&APIUser{ID: u[0], Name: u[1]}, t0)
			return err
		})
	}
	for _, k := range []APIKey{{ID: "k1", Hash: "h1", User: "u1", Label: "laptop"}, {ID: "k2", Hash: "h2", User: "u2", Until: t0.Add(time.Hour)}, {ID: "k3", Hash: "h3", User: "u1", Until: t0.Add(keepKeys)}} {
		do(t, s, func(tx *Tx) error { return tx.API().AddKey(k, t0) })
	}
	ids := func() (text string) {
		for _, k := range value[[]*APIKey](t)(s.API().Keys(ctx)) {
			text += k.ID
		}
		return text
	}
	if got := ids(); got != "k2k1k3" {
		t.Errorf("keys %s", got)
	}
	k := value[*APIKey](t)(s.API().Key(ctx, "h1"))
	if k == nil || k.ID != "k1" || k.User != "u1" || k.Name != "bert" || k.Label != "laptop" || !k.CreatedAt.Equal(t0) || !k.Until.IsZero() || !k.UsedAt.IsZero() {
		t.Errorf("%+v", k)
	}
	if k := value[*APIKey](t)(s.API().KeyByID(ctx, "k2")); k == nil || !k.Until.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", k)
	}
	do(t, s, func(tx *Tx) error { return tx.API().UseKey("k1", t0.Add(2*time.Minute)) })
	do(t, s, func(tx *Tx) error { return tx.API().UseKey("k1", t0.Add(time.Minute)) }) // which came later
	if k := value[*APIKey](t)(s.API().Key(ctx, "h1")); !k.UsedAt.Equal(t0.Add(2 * time.Minute)) {
		t.Errorf("it was used at %v", k.UsedAt)
	}
	ok(t, s.Sweep(ctx, Retention{IDs: time.Hour, Outbox: time.Hour, Entries: 10}, t0.Add(keepKeys+2*time.Hour)))
	if got := ids(); got != "k1k3" {
		t.Errorf("after a sweep there are %s", got)
	}
	do(t, s, func(tx *Tx) error { return tx.API().RemoveKey("k3") })
	if value[*APIKey](t)(s.API().Key(ctx, "h3")) != nil || value[*APIKey](t)(s.API().Key(ctx, "h1")) == nil {
		t.Error("more or less than the key is gone")
	}
	do(t, s, func(tx *Tx) error { return tx.API().RemoveUser("u1") })
	if got := ids(); got != "" || value[*APIKey](t)(s.API().Key(ctx, "h1")) != nil {
		t.Error("a user is gone and the key is not")
	}
}

// A login or a key that was ended after a copy was made does not come back with the copy.
func TestFrontLoginsEndWithARestore(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	s := open(t, dir)
	do(t, s, func(tx *Tx) error {
		if _, err := tx.API().AddUser(&APIUser{ID: "u", Name: "anna"}, t0); err != nil {
			return err
		}
		if err := tx.API().AddKey(APIKey{ID: "k", Hash: "key", User: "u"}, t0); err != nil {
			return err
		}
		return tx.API().AddToken(APIToken{Hash: "at", Login: "l", User: "u", Until: t0}, t0)
	})
	ok(t, s.Backup(ctx, filepath.Join(copied, File)))
	again := open(t, copied)
	if value[*APIToken](t)(again.API().Token(ctx, "at")) != nil || value[*APIKey](t)(again.API().Key(ctx, "key")) != nil || value[*APIUser](t)(again.API().User(ctx, "anna")) == nil {
		t.Error("the login came back, or the user did not")
	}
}
