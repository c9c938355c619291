package doctor

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A real disk that is nearly full.
func TestDiskLowOnASmallDisk(t *testing.T) {
	dir := disk(t, 0, "size=1m")
	list := Check(folderFacts(ProbeFolder(dir)))
	mustFind(t, list, "disk_low", dir, "of 1.0 MiB")
	mustNotFind(t, list, "data_unwritable")
}

// A full disk and one that is for reading only are told apart from a folder of somebody else.
func TestDataUnwritableOnADisk(t *testing.T) {
	mustFind(t, Check(folderFacts(ProbeFolder(disk(t, 0, "nr_inodes=1")))), "data_unwritable", "no space left on device", "Free space")
	mustFind(t, Check(folderFacts(ProbeFolder(disk(t, syscall.MS_RDONLY, "size=1m")))), "data_unwritable", "read-only file system", "Remount")
}

// disk mounts a disk in memory.
func disk(t *testing.T, flags uintptr, options string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	ok(t, os.Mkdir(dir, 0o700))
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Skipf("a small disk cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}
