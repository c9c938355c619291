package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A real disk that is nearly full.
func TestDiskLowOnASmallDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	ok(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("a small disk cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	list := Examine(folderFacts(LookFolder(dir)))
	mustFind(t, list, "disk_low", dir, "of 1.0 MiB")
	mustNotFind(t, list, "data_unwritable")
}
