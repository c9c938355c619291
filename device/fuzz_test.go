package device

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFileStore checks that Load reads or rejects a damaged folder, and that a message added
// afterwards is there.
func FuzzFileStore(f *testing.F) {
	for _, text := range []string{"", "{", `{"epoch":"e","seq":7}`, `{"id":"m1","frame":"eyJ0IjoidGV4dCJ9"}`, `{"id":7}`, "null", "[]", "\xff"} {
		f.Add([]byte(text), []byte(text))
	}
	f.Fuzz(func(t *testing.T, cursor, entry []byte) {
		dir := t.TempDir()
		s, err := NewFileStore(dir)
		if err != nil {
			t.Fatal(err)
		}
		for name, data := range map[string][]byte{"cursor.json": cursor, "token": cursor, "outgoing/3.json": entry, "outgoing/x.json": entry} {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		before, err := s.Load()
		if err != nil {
			return
		}
		if err := s.Add(Entry{ID: "added", Frame: []byte(`{"t":"stop","id":"added"}`)}); err != nil {
			t.Fatal(err)
		}
		after, err := s.Load()
		if err != nil || len(after.Queue) != len(before.Queue)+1 || after.Queue[len(after.Queue)-1].ID != "added" {
			t.Fatalf("%d entries, then %d, %v", len(before.Queue), len(after.Queue), err)
		}
	})
}
