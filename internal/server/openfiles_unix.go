//go:build unix

package server

import "syscall"

// openFiles is how many files this process may have open; 0: it cannot be told.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, 1<<20))
}
