package setup

import (
	"bytes"
	"testing"
)

// FuzzEdit checks that an edit of any file succeeds or returns an error, and that a second run finds
// nothing to change.
func FuzzEdit(f *testing.F) {
	for _, text := range []string{"", "a: 1\n", "display: {a: b}\n", "display:\n  x: |\n    y\n# z", "a: &b {c: d}\ne: *b\n", "? a\n: b\n", "a:\n- b\n", "\ufeffa: 1\r\n"} {
		f.Add([]byte(text))
	}
	list := wants(Version{0, 22}, testURL, true)
	f.Fuzz(func(t *testing.T, text []byte) {
		out, changes, _ := edit(text, list)
		if again, more, _ := edit(out, list); len(more) > 0 || !bytes.Equal(again, out) {
			t.Errorf("the second time %+v changed\n%s\nof\n%s", more, again, text)
		}
		for i := len(changes) - 1; i >= 0; i-- {
			if next, ok := revert(out, changes[i]); ok {
				out = next
			}
		}
	})
}

// FuzzSetenv checks that setenv works on any .env. It finds the variable afterwards, a second call
// changes nothing, and no other variable changes.
func FuzzSetenv(f *testing.F) {
	for _, text := range []string{"", "A=1\n", "X=old", "  export X = old # c\nB=2\n", "X=\"a\nb\"\n", "X='\\''", "\ufeffX=1\r\nX=2\r\n", "=\nX\n'X'=1\n", "A=\"b\nX=1\n", "X=$(a)\x00\n\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		other, there := getenv(text, "OTHER")
		out, _, err := setenv(text, "X", "new")
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if v, ok := getenv(out, "X"); !ok || v != "new" {
			t.Fatalf("%q becomes %q, where X is %q", text, out, v)
		}
		if again, c, err := setenv(out, "X", "new"); err != nil || c != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q becomes %q, then %q", text, out, again)
		}
		if v, ok := getenv(out, "OTHER"); v != other || ok != there {
			t.Fatalf("%q becomes %q: OTHER was %q", text, out, other)
		}
	})
}

// FuzzVersion checks that ParseVersion accepts any text, and parses what String returns.
func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", "0.22.2", "Hermes Agent v0.19.0 (2026)", "9999.9999", "1.2.3.4", "a1.2b", "\xff0.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := ParseVersion(text)
		if again, is := ParseVersion(v.String()); ok && (!is || again != v) {
			t.Fatalf("%q: %v, then %v", text, v, again)
		}
	})
}
