package setup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/asowner"
)

// Process is a running gateway.
type Process struct {
	PID   int       // 0 if it is unknown, for example because the gateway runs in a container
	Since time.Time // the approximate start time
}

// A running gateway holds a lock on gateway.lock. It writes its process id and start time to that
// file and to gateway.pid. The start time tells it from a later process with the same id. A gateway
// that was killed leaves both files behind.
const (
	pidFile  = "gateway.pid"
	lockFile = "gateway.lock"
)

// maxRecord is the maximum size of such a file.
const maxRecord = 64 << 10

// Running finds the running gateway of a home, as `hermes gateway status` does. A gateway that
// serves all profiles belongs to the main home, so Running also searches the main home of a
// profile.
func Running(home Home) (Process, bool) {
	paths := []string{home.Path}
	if home.Profile != "" {
		paths = append(paths, filepath.Dir(filepath.Dir(home.Path)))
	}
	for _, path := range paths {
		if p, ok := runningIn(path); ok {
			return p, true
		}
	}
	return Process{}, false
}

// runningIn finds the running gateway whose files are in a home.
func runningIn(home string) (Process, bool) {
	var since time.Time
	for _, name := range []string{pidFile, lockFile} {
		path := filepath.Join(home, name)
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if since.IsZero() {
			since = info.ModTime()
		}
		text, _, err := asowner.ReadFile(path, maxRecord)
		if err != nil {
			continue
		}
		if pid, started, ok := readRecord(text); ok && alive(pid, started) {
			return Process{PID: pid, Since: info.ModTime()}, true
		}
	}
	// The process may be invisible from here, as in a container. The lock is visible.
	if locked(filepath.Join(home, lockFile)) {
		return Process{Since: since}, true
	}
	return Process{}, false
}

// readRecord parses {"pid": 1, "start_time": 2, …}, or the bare process id that old releases wrote.
func readRecord(text []byte) (pid int, started int64, ok bool) {
	var r struct {
		PID     int    `json:"pid"`
		Started *int64 `json:"start_time"`
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return n, 0, n > 0
	}
	if json.Unmarshal(text, &r) != nil || r.PID <= 0 {
		return 0, 0, false
	}
	if r.Started != nil {
		started = *r.Started
	}
	return r.PID, started, true
}
