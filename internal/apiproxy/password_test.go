package apiproxy

import (
	"context"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/passhash"
)

func TestUsers(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	for name, password := range map[string]string{"": password, "a b": password, "-a": password, strings.Repeat("a", 65): password, "Anna": password, "short": "1234567", "long": strings.Repeat("x", 1025), "line": "a password\n"} {
		if err := r.users.Add(ctx, name, password); err == nil {
			t.Errorf("%q with %q is added", name, password)
		}
	}
	if err := r.users.Add(ctx, "Me@Example.com", "пароль12"); err != nil {
		t.Error(err)
	}
	list, err := r.users.List(ctx)
	ok(t, err)
	if len(list) != 3 || list[2].Name != "me@example.com" || list[0].SeenAt != nil {
		t.Errorf("%+v", list)
	}
	if _, err := r.users.Remove(ctx, "nobody"); err == nil {
		t.Error("nobody was removed")
	}
	if _, err := r.users.SetPassword(ctx, "anna", "short"); err == nil {
		t.Error("a short password was set")
	}
}

// TestRehash: who logs in after the work of a password has grown gets a better hash of it, and
// nobody else does.
func TestRehash(t *testing.T) {
	r := newRig(t)
	ctx := t.Context()
	stored := func() string {
		t.Helper()
		u, err := r.store.FrontUser(ctx, "anna")
		ok(t, err)
		return u.Password
	}
	before := stored()
	better := NewUsers(r.store, Cost{Memory: 128, Passes: 2, Lanes: 1}, time.Now)
	for _, tc := range []struct{ password, begins string }{{"wrong one", before}, {password, "$argon2id$v=19$m=128,t=2,p=1$"}} {
		u, err := better.check(ctx, "anna", tc.password)
		ok(t, err)
		if (u != nil) != (tc.password == password) || !strings.HasPrefix(stored(), tc.begins) {
			t.Errorf("with %q: %+v, and stored is %q", tc.password, u, stored())
		}
	}
	grown := stored()
	if u, err := r.users.check(ctx, "anna", password); err != nil || u == nil || stored() != grown {
		t.Errorf("%v %v: a better hash became a worse one", u, err)
	}
}

// TestUnknownTakesAsLong: the work for a name that is unknown is that for one that is known.
func TestUnknownTakesAsLong(t *testing.T) {
	r := newRig(t)
	dummy, known := r.users.dummy.String(), passhash.New(r.users.cost, password).String()
	if strings.Split(dummy, "$")[3] != strings.Split(known, "$")[3] || len(dummy) != len(known) {
		t.Errorf("the hash of an unknown name is %s, that of a known one %s", dummy, known)
	}
	// It waits for its turn as a known one does.
	for range atOnce() {
		r.users.work <- struct{}{}
	}
	for _, name := range []string{"anna", "nobody"} {
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.users.check(done, name, password); err == nil {
			t.Errorf("%s was checked without work", name)
		}
	}
	for range atOnce() {
		<-r.users.work
	}
}
