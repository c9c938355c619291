package server

import (
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const v2 = "sys/fs/cgroup/"
	for name, tc := range map[string]struct {
		files map[string]string
		limit int64
		file  string
	}{
		"no control groups": {},
		"version 2, a container": {map[string]string{"proc/self/cgroup": "0::/\n", v2 + "memory.max": "536870912\n", v2 + "memory.high": "max\n"},
			512 << 20, v2 + "memory.max"},
		"version 2, a system unit": {map[string]string{"proc/self/cgroup": "0::/system.slice/hermes-mobile.service\n", v2 + "system.slice/hermes-mobile.service/memory.max": "max\n",
			v2 + "system.slice/hermes-mobile.service/memory.high": "268435456\n", v2 + "system.slice/memory.max": "max"}, 256 << 20, v2 + "system.slice/hermes-mobile.service/memory.high"},
		"version 2, the group above has less": {map[string]string{"proc/self/cgroup": "0::/a/b\n", v2 + "a/b/memory.max": "2000000\n", v2 + "a/memory.max": "1000000\n"},
			1_000_000, v2 + "a/memory.max"},
		"version 2, no limit": {map[string]string{"proc/self/cgroup": "0::/a\n", v2 + "a/memory.max": "max\n"}, 0, ""},
		"version 1": {map[string]string{"proc/self/cgroup": "9:name=systemd:/x\n4:cpu,memory:/docker/abc\n0::/\n", "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "104857600\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 100 << 20, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"},
		"version 1, the path of the host": {map[string]string{"proc/self/cgroup": "4:memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "104857600\n"},
			100 << 20, "sys/fs/cgroup/memory/memory.limit_in_bytes"},
		"version 1, no limit": {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0, ""},
		"nonsense": {map[string]string{"proc/self/cgroup": "\n:::\n0\n0::/../../..\n4:memory:\n", "sys/fs/cgroup/memory.max": "-1\n",
			"sys/fs/cgroup/memory.high": "0", "sys/fs/cgroup/memory/memory.limit_in_bytes": "99999999999999999999999\n"}, 0, ""},
	} {
		root := fstest.MapFS{}
		for file, text := range tc.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if limit, file := memoryLimit(root); limit != tc.limit || file != tc.file {
			t.Errorf("%s: %d of %q, want %d of %q", name, limit, file, tc.limit, tc.file)
		}
	}
}

func TestLimitMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("10000000000\n")}}
	out := &log{}
	logger := slog.New(slog.NewTextHandler(out, nil))
	t.Setenv("GOMEMLIMIT", "1GiB")
	LimitMemory(root, logger)
	if got := debug.SetMemoryLimit(-1); got != before || out.String() != "" {
		t.Errorf("GOMEMLIMIT does not win: %d, %s", got, out)
	}
	t.Setenv("GOMEMLIMIT", "")
	LimitMemory(fstest.MapFS{}, logger)
	if got := debug.SetMemoryLimit(-1); got != before || out.String() != "" {
		t.Errorf("without a limit it is %d: %s", got, out)
	}
	debug.SetMemoryLimit(math.MaxInt64)
	LimitMemory(root, logger)
	if got := debug.SetMemoryLimit(-1); got != 9_000_000_000 {
		t.Errorf("the limit is %d", got)
	}
	if !strings.Contains(out.String(), `msg="memory limit set" bytes=9000000000 of=10000000000 file=/sys/fs/cgroup/memory.max`) {
		t.Errorf("the log says %s", out)
	}
}
