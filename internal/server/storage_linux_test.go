package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hermes-mobile/frame"
)

// A real disk that gets full: new files are refused before it is, texts still go, what was accepted
// is there, and with room again files are taken. The limit of the data folder does not matter.
func TestDiskIsLow(t *testing.T) {
	dir := folder(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Skipf("a small disk cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	r := startIn(t, dir, "MOBILE_TOKEN="+mainToken, "MOBILE_MAX_DATA=1GiB", "MOBILE_MAX_DEVICE_DATA=1GiB")
	d, other := r.connect("tel-1", mainToken), r.connect("tel-2", mainToken)
	if e := d.upload("f", 3<<20); e != nil {
		t.Fatalf("%+v", e)
	}
	// Somebody else fills the disk but for 5 MiB.
	var st syscall.Statfs_t
	ok(t, syscall.Statfs(dir, &st))
	filler := filepath.Join(dir, "filler")
	ok(t, os.WriteFile(filler, make([]byte, int64(st.Bavail)*int64(st.Bsize)-5<<20), 0o600))
	e := d.upload("g", 3<<20)
	if e == nil || e.Code != frame.NoSpace || !strings.Contains(e.Message, "disk is nearly full") || !strings.Contains(e.Message, "messages without files still go") {
		t.Errorf("a file gets %+v", e)
	}
	for i := range 20 {
		other.ask(fmt.Sprint("m", i), "still here?")
	}
	f, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
	ok(t, err)
	_, err = f.Write(make([]byte, 3<<20))
	ok(t, err)
	ok(t, f.Close())
	if e := d.upload("h", 1000); e == nil || e.Code != frame.NoSpace {
		t.Errorf("a small file gets %+v", e)
	}
	mustFind(t, r.issues(), "disk_low", "The server rejects new files until", dir)
	ok(t, os.Remove(filler))
	if e := d.upload("g", 3<<20); e != nil {
		t.Errorf("with room again: %+v", e)
	}
	if f := mustFind(t, r.issues(), "disk_low"); strings.Contains(f.Text, "rejects") { // so small a disk is always low
		t.Errorf("with room again the doctor says %s", f.Text)
	}
}
