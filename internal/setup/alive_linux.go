package setup

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// drift is how far two readings of a start time may lie apart, in ticks of which a second has 100.
const drift = 200

// alive reports whether the process that a gateway wrote down is there still: not another one with its id, nor one that has
// ended and was not waited for.
func alive(pid int, started int64) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	behind := strings.LastIndexByte(string(text), ')') + 1 // the name may hold anything
	fields := strings.Fields(string(text[behind:]))        // from the third of the file on
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return false
	}
	now, err := strconv.ParseInt(fields[19], 10, 64)
	return started == 0 || err != nil || max(now-started, started-now) <= drift
}

// environ is what a process was started with; nothing where that is not for us to see.
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
