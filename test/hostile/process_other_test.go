//go:build !linux

package hostile

import "testing"

// openFiles is how many files a process may have open, as far as it is known.
func openFiles() int { return 1024 }

// controlGroup: there are none on this system.
func controlGroup(t testing.TB, _ int64) (path string, set int64) {
	t.Skip("this system has no control groups")
	return "", 0
}
