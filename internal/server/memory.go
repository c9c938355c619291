package server

import (
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// memoryShare is the percentage of the memory limit that Go's collector may use. The rest is
	// for memory that it doesn't manage, such as the database's pages.
	memoryShare = 90
	// noMemoryLimit and above means no limit: version 1 of control groups writes a large number.
	noMemoryLimit = 1 << 60
)

// LimitMemory makes Go's collector work harder before this process reaches the memory limit of its
// control group, which a container or a systemd unit sets. GOMEMLIMIT overrides it. root is the
// root of the file system.
func LimitMemory(root fs.FS, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return // the runtime applies it
	}
	limit, file := memoryLimit(root)
	if file == "" {
		return
	}
	soft := limit / 100 * memoryShare
	debug.SetMemoryLimit(soft)
	log.Info("memory limit set", "bytes", soft, "of", limit, "file", "/"+file)
}

// memoryLimit returns the lowest memory limit of the control groups of this process, and its file.
// The file is empty if there is no limit.
func memoryLimit(root fs.FS) (limit int64, file string) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, "" // not Linux
	}
	look := func(mount, group string, names ...string) {
		// Limits of parent groups apply too. In a container the path may be the host's, while the
		// mount begins with the container's group: then only the last step finds a file.
		for group = path.Clean("/" + group); ; group = path.Dir(group) {
			for _, name := range names {
				at := path.Join(mount, group, name)
				n, ok := readLimit(root, at)
				if ok && (file == "" || n < limit) {
					limit, file = n, at
				}
			}
			if group == "/" {
				return
			}
		}
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		switch controllers := parts[1]; {
		case controllers == "": // version 2
			look("sys/fs/cgroup", parts[2], "memory.max", "memory.high")
		case strings.Contains(","+controllers+",", ",memory,"):
			look("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes")
		}
	}
	return limit, file
}

// readLimit reads a file that contains a number of bytes, or "max".
func readLimit(root fs.FS, name string) (n int64, ok bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n > 0 && n < noMemoryLimit
}
