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

// Process is a gateway that runs.
type Process struct {
	PID   int       // 0 where it cannot be told: it runs in a container, say
	Since time.Time // about
}

// A running gateway holds a lock on gateway.lock and has written who it is there and in gateway.pid: process id, and a start
// time that tells it from a later process with the same id. Both files may be left by one that was killed.
const (
	pidFile  = "gateway.pid"
	lockFile = "gateway.lock"
)

// maxRecord bounds what is read of such a file.
const maxRecord = 64 << 10

// Running finds the gateway that runs on a home, as `hermes gateway status` does. One that serves all profiles belongs to the
// main home.
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
	// Its process cannot be seen from here; the lock can.
	if locked(filepath.Join(home, lockFile)) {
		return Process{Since: since}, true
	}
	return Process{}, false
}

// readRecord reads {"pid": 1, "start_time": 2, …}, or the bare number that old releases wrote.
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
