package passhash

import (
	"errors"
	"strings"
	"testing"
)

var cheap = Cost{Memory: 64, Passes: 1, Lanes: 1}

const password = "correct horse"

func TestHash(t *testing.T) {
	a, b := New(cheap, password).String(), New(cheap, password).String()
	if a == b || !strings.HasPrefix(a, Prefix+"v=19$m=64,t=1,p=1$") {
		t.Errorf("%q %q", a, b)
	}
	h, err := Parse(a)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Matches(password) || h.Matches("Correct horse") || h.Matches("") {
		t.Error("the wrong password matches, or the right one does not")
	}
	if h.Weaker(cheap) || !h.Weaker(Cost{Memory: 128, Passes: 1, Lanes: 1}) || !h.Weaker(Cost{Memory: 64, Passes: 2, Lanes: 1}) {
		t.Error("Weaker compares wrongly")
	}
	for _, bad := range []string{"", "x", a + "!", strings.Replace(a, "argon2id", "argon2i", 1), strings.Replace(a, "v=19", "v=16", 1), strings.Replace(a, "m=64", "m=99999999", 1),
		strings.Replace(a, "t=1", "t=0", 1), strings.Replace(a, "p=1", "p=0", 1), "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$"} {
		h, err := Parse(bad)
		if !errors.Is(err, ErrForm) {
			t.Errorf("%q: %v", bad, err)
		}
		if h.Matches(password) || h.Matches("") {
			t.Errorf("%q: what cannot be read matches", bad)
		}
	}
	if dummy := Dummy(cheap); dummy.Matches("") || dummy.Matches(password) || dummy.String() == Dummy(cheap).String() {
		t.Error("the dummy has a password")
	}
}

// FuzzParse: a hash that was damaged is rejected, and never costs more work than the limit.
func FuzzParse(f *testing.F) {
	f.Add("")
	f.Add(New(cheap, password).String())
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=255$AAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA")
	f.Add("$argon2id$v=19$m=64,t=1,p=1$$")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := Parse(s)
		if err != nil {
			return
		}
		if h.String() != s || h.cost.Memory > maxMemory || h.cost.Passes > maxPasses || h.cost.Passes == 0 || h.cost.Lanes == 0 {
			t.Fatalf("%q is read as %+v", s, h)
		}
	})
}
