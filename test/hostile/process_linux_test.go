package hostile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// openFiles is how many files a process may have open.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<20)) // which Go has raised as far as it may
}

// controlGroup makes a control group with a memory limit, below the one of this process. It skips the test where that is not allowed.
func controlGroup(t testing.TB, limit int64) (path string, set int64) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	ok(t, err)
	mount, file, own := "/sys/fs/cgroup", "memory.max", ""
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) != 3:
		case strings.Contains(","+parts[1]+",", ",memory,"):
			mount, file, own = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", parts[2]
		case parts[1] == "" && own == "":
			own = parts[2]
		}
	}
	path = filepath.Join(mount, own, "hermes-mobile-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Skipf("no control group can be made here: %v", err)
	}
	t.Cleanup(func() {
		until(t, "the control group to be removed", func() bool { return syscall.Rmdir(path) == nil })
	})
	if err := os.WriteFile(filepath.Join(path, file), []byte(strconv.FormatInt(limit, 10)), 0o600); err != nil {
		t.Skipf("no memory limit can be set here: %v", err)
	}
	return path, limit
}
