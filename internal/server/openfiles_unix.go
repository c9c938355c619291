//go:build unix

package server

import "syscall"

// openFiles returns how many files this process may have open, 0 if that isn't known.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return int(min(l.Cur, 1<<20))
}
