//go:build unix && !linux

package setup

import (
	"errors"
	"syscall"
)

// alive reports whether the process id that a gateway recorded is in use.
func alive(pid int, _ int64) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// environ returns nil: these systems don't show the environment of a process.
func environ(int) []string { return nil }
