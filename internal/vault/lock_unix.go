//go:build unix && !solaris && !aix

package vault

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of an open file, or returns errBusy. The lock ends with the file, also
// when the process is killed.
func tryLock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errBusy
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return nil // a file system without locks
		default:
			return err
		}
	}
}
