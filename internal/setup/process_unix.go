//go:build unix && !solaris && !aix

package setup

import (
	"errors"
	"syscall"

	"hermes-mobile/internal/asowner"
)

// locked reports whether a process holds the lock of a file. To test it, locked briefly takes a
// shared lock.
func locked(path string) bool {
	f, _, err := asowner.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // which also releases our own lock
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
