package store

import (
	"testing"
	"time"
)

func TestPasskeys(t *testing.T) {
	s := open(t, t.TempDir())
	add := func(id string, most int) (added bool) {
		do(t, s, func(tx *Tx) (err error) {
			added, err = tx.Passkeys().Add(Passkey{ID: id, Name: "key " + id, Credential: []byte("{}"), CreatedAt: t0}, most)
			return err
		})
		return added
	}
	if !add("b", 2) || add("b", 2) || !add("a", 2) || add("c", 2) {
		t.Error("a passkey is added twice, or there are more than two")
	}
	list := value[[]Passkey](t)(s.Passkeys().List(ctx))
	if len(list) != 2 || list[0].ID != "a" || !list[0].UsedAt.IsZero() || !list[0].CreatedAt.Equal(t0) {
		t.Errorf("%+v", list)
	}
	for name, change := range map[string]func(tx *Tx, id string) (bool, error){
		"rename": func(tx *Tx, id string) (bool, error) { return tx.Passkeys().Rename(id, "other") },
		"use":    func(tx *Tx, id string) (bool, error) { return tx.Passkeys().Use(id, []byte("2"), t0.Add(time.Hour)) },
	} {
		for id, want := range map[string]bool{"a": true, "nobody": false} {
			found := !want
			do(t, s, func(tx *Tx) (err error) { found, err = change(tx, id); return err })
			if found != want {
				t.Errorf("%s %s: %v", name, id, found)
			}
		}
	}
	if p := value[*Passkey](t)(s.Passkeys().Get(ctx, "a")); p == nil || p.Name != "other" || string(p.Credential) != "2" || !p.UsedAt.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", p)
	}
	found := false
	do(t, s, func(tx *Tx) (err error) { found, err = tx.Passkeys().Remove("a"); return err })
	if p := value[*Passkey](t)(s.Passkeys().Get(ctx, "a")); !found || p != nil {
		t.Errorf("%v, %+v is left", found, p)
	}
}
