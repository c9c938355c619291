package shellquote

import "testing"

func TestWord(t *testing.T) {
	for in, want := range map[string]string{"/var/lib/x-1": "/var/lib/x-1", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$x": "'$x'", "~/x": "'~/x'"} {
		if got := Word(in); got != want {
			t.Errorf("Word(%q) = %s, want %s", in, got, want)
		}
	}
}
