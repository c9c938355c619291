//go:build !unix

package setup

import "os"

// alive reports whether the process id that a gateway recorded is in use.
func alive(pid int, _ int64) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}

// environ returns nil: these systems don't show the environment of a process.
func environ(int) []string { return nil }
