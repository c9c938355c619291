//go:build unix && !solaris && !aix

package access

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow keeps root from creating a file at the target of a link in somebody else's folder.
const noFollow = syscall.O_NOFOLLOW

// tryLock takes the lock of an open file, or returns ErrBusy. The lock ends with the file, also
// when the process is killed.
func tryLock(f *os.File) error {
	for {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrBusy
		case errors.Is(err, syscall.ENOTSUP), errors.Is(err, syscall.ENOSYS):
			return nil // a file system without locks: better unlocked than unusable
		default:
			return err
		}
	}
}

// keepGroup gives a file the group of another, if that is allowed.
func keepGroup(f *os.File, like fs.FileInfo) error {
	st, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.ErrUnsupported
	}
	return f.Chown(-1, int(st.Gid))
}
