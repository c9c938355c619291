package media

import (
	"strings"
	"testing"
	"time"
)

// FuzzAssembler: whatever parts come in whatever order, the bounds hold, and when they are freed
// nothing is left in memory or on the disk.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 0, 2, 9, 0, 1, 2, 9})
	f.Add([]byte{0, 1, 2, 9, 0, 1, 2, 8, 0, 0, 2, 9, 255})
	f.Add([]byte{1, 0, 1, 0, 2, 0, 255, 255, 3, 0, 12, 200, 4, 0, 12, 200, 5, 1, 12, 200, 254, 0, 0, 0})
	f.Fuzz(func(t *testing.T, steps []byte) {
		files, err := OpenStore(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		a := NewAssembler(tiny, files)
		now := time.Unix(1_800_000_000, 0)
		for ; len(steps) >= 4; steps = steps[4:] {
			if steps[0] == 255 {
				a.Free()
				continue
			}
			now = now.Add(time.Duration(steps[0]>>4) * time.Second)
			id := string('a' + rune(steps[0]&7))
			if steps[0]&8 != 0 {
				id = ""
			}
			u, err := a.Add(Part{ID: id, Kind: "image", Filename: "../" + id, Part: int(int8(steps[1])), Parts: int(int8(steps[2])), Data: make([]byte, int(steps[3])*20)}, now)
			if err != nil && u != nil {
				t.Fatal("a file and an error")
			}
			if u != nil && (strings.ContainsAny(u.Filename, `/\`) || u.File.Size > tiny.MaxFile*2) {
				t.Fatalf("%+v", u)
			}
			if a.bytes > tiny.MaxFile || a.memory > tiny.SpoolAbove || len(a.open) > tiny.MaxUploads || len(a.dropped) > maxDropped {
				t.Fatalf("over a limit: %d bytes, %d in memory, %d series, %d dropped", a.bytes, a.memory, len(a.open), len(a.dropped))
			}
		}
		a.Free()
		if a.bytes != 0 || a.memory != 0 {
			t.Fatalf("%d bytes, %d in memory are left", a.bytes, a.memory)
		}
		if left := temps(t, files); len(left) != 0 {
			t.Fatalf("%v are left", left)
		}
	})
}

// FuzzCorrect: whatever a file is said to be and begins with, what it is served as can stand in a
// header.
func FuzzCorrect(f *testing.F) {
	for _, s := range []string{"", "image/png", "text/html; charset=utf-8", "a/b\r\nX: y", "image/svg+xml", strings.Repeat("a/", 500)} {
		f.Add("image", s, []byte("\x89PNG\r\n\x1a\n"))
		f.Add("voice", s, []byte("OggS"))
		f.Add("\xff", s, []byte("<html><script>"))
	}
	f.Fuzz(func(t *testing.T, kind, mimeType string, head []byte) {
		_, m := Correct(kind, mimeType, head)
		if strings.ContainsAny(m, "\r\n\x00") || m != "" && validMime(m) == "" {
			t.Fatalf("%q, %q, %q: %q", kind, mimeType, head, m)
		}
		_ = CheckAudio(kind, head)
	})
}
