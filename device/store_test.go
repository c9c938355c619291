package device_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

func fileStore(t *testing.T, dir string) device.Store {
	t.Helper()
	s, err := device.NewFileStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStores(t *testing.T) {
	dir := t.TempDir()
	mem := device.NewMemoryStore()
	for name, open := range map[string]func() device.Store{
		"memory": func() device.Store { return mem },
		"file":   func() device.Store { return fileStore(t, dir) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open()
			if saved, err := s.Load(); err != nil || saved.Cursor.Epoch != "" || saved.Token != "" || len(saved.Queue) != 0 {
				t.Fatal(saved, err)
			}
			for _, id := range []string{"a/../b", "b", "c"} {
				if err := s.Add(device.Entry{ID: id, Frame: []byte(`{"t":"text","id":"x"}`)}); err != nil {
					t.Fatal(err)
				}
			}
			for _, err := range []error{s.Remove("b"), s.Remove("nobody"), s.SetToken("secret"), s.SetCursor(frame.Cursor{Epoch: "e", Seq: 7})} {
				if err != nil {
					t.Fatal(err)
				}
			}
			s = open()
			saved, err := s.Load()
			if err != nil || saved.Cursor.Seq != 7 || saved.Token != "secret" || len(saved.Queue) != 2 || saved.Queue[0].ID != "a/../b" || saved.Queue[1].ID != "c" {
				t.Fatalf("%+v %v", saved, err)
			}
			s.Add(device.Entry{ID: "d", Frame: []byte(`{}`)})
			if saved, _ := open().Load(); len(saved.Queue) != 3 || saved.Queue[2].ID != "d" {
				t.Fatalf("%+v", saved)
			}
		})
	}
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if info, _ := d.Info(); path != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		return nil
	})
}

// A process that is killed while it writes leaves a partial file, which the next one removes.
func TestFileStoreRemovesWhatWasHalfWritten(t *testing.T) {
	dir := t.TempDir()
	f := fileStore(t, dir)
	if err := f.Add(device.Entry{ID: "a", Frame: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".new-1", filepath.Join("outgoing", ".new-2")} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"id`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	saved, err := fileStore(t, dir).Load()
	if err != nil || len(saved.Queue) != 1 {
		t.Fatal(saved, err)
	}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error {
		if strings.HasPrefix(filepath.Base(path), ".new-") {
			t.Errorf("%s is left", path)
		}
		return nil
	})
}

func TestFileStoreKeepsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	fileStore(t, dir)
	os.WriteFile(filepath.Join(dir, "cursor.json"), []byte(`{"epo`), 0o600)
	if saved, err := fileStore(t, dir).Load(); err != nil || saved.Cursor.Epoch != "" {
		t.Fatal(saved, err)
	}
	os.WriteFile(filepath.Join(dir, "outgoing", "3.json"), []byte(`{"id`), 0o600)
	if _, err := fileStore(t, dir).Load(); err == nil {
		t.Fatal("a message got lost silently")
	}
}
