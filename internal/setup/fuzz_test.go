package setup

import (
	"bytes"
	"testing"
)

// FuzzEdit: no file makes it fail in another way than by an error, and what it writes it finds right the second time.
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
