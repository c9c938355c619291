package media

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"hermes-mobile/internal/quota"
)

// A disk that gets full in the middle of a file: what was stored stays whole, nothing half done is
// left or counted, and with room again the same file is taken. With a look at the free space it
// does not come to that.
func TestDiskGetsFull(t *testing.T) {
	for _, c := range []struct {
		name  string
		looks bool
	}{{"it is written until there is no space", false}, {"the free space is seen before", true}} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "disk")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
				t.Skipf("a small disk cannot be made here: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
			s, err := OpenStore(filepath.Join(dir, "files"))
			if err != nil {
				t.Fatal(err)
			}
			o := quota.Options{Limit: 1 << 40}
			if c.looks {
				o.Space = func() (uint64, uint64, bool) { return quota.Space(dir) }
			}
			b := quota.NewBudget(o)
			bind(t, s, b)
			var stored [][]byte
			var files []File
			for i := range 100 {
				data := append(pattern(300<<10), byte(i))
				f, err := s.Put(data)
				if err != nil {
					if quota.Why(err) != quota.Disk || errors.Is(err, syscall.ENOSPC) == c.looks {
						t.Errorf("a full disk gives %v", err)
					}
					break
				}
				stored, files = append(stored, data), append(files, f)
			}
			if len(stored) < 5 || len(stored) > 15 {
				t.Fatalf("%d files fit", len(stored))
			}
			a := NewAssembler(Limits{SpoolAbove: 1}, s)
			if _, err := a.Add(part("p", pattern(1<<20), 0, 2), t0); quota.Why(err) != quota.Disk {
				t.Errorf("a part gives %v", err)
			}
			if left := temps(t, s); len(left) != 0 || b.Files() != onDisk(t, s) {
				t.Errorf("left: %v, %d bytes are counted of %d", left, b.Files(), onDisk(t, s))
			}
			for i, f := range files {
				wantContent(t, s, f, stored[i])
			}
			if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=16m"); err != nil {
				t.Fatal(err)
			}
			mustPut(t, s, append(pattern(300<<10), 99))
		})
	}
}
