//go:build unix && !solaris && !aix

package setup

import (
	"errors"
	"syscall"

	"hermes-mobile/internal/asowner"
)

// locked reports whether somebody holds the lock of a file. Asking takes a shared one for a moment.
func locked(path string) bool {
	f, _, err := asowner.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // and with it our own lock
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK)
}
