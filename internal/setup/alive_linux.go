package setup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// drift is the maximum difference between two readings of a start time, in ticks of 10 ms.
const drift = 200

// alive reports whether the process that a gateway recorded still runs. It returns false for a
// later process with the same id, and for a zombie.
func alive(pid int, started int64) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	behind := strings.LastIndexByte(string(text), ')') + 1 // the name may contain any character
	fields := strings.Fields(string(text[behind:]))        // from the third field of the file on
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return false
	}
	now, err := strconv.ParseInt(fields[19], 10, 64)
	return started == 0 || err != nil || max(now-started, started-now) <= drift
}

// environ returns the environment that a process was started with. It returns nil if this process
// may not read it.
func environ(pid int) []string {
	if pid <= 0 {
		return nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\x00")
}
