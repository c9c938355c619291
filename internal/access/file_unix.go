//go:build unix && !solaris && !aix

package access

import (
	"errors"
	"os"
	"syscall"
)

// noFollow keeps root from making a file wherever a link in somebody else's
// folder points to.
const noFollow = syscall.O_NOFOLLOW

// tryLock takes the lock of an open file, or fails with ErrBusy. It ends with
// the file, also when the process is killed.
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

// matchOwner gives a file that root made to the owner of its folder: a command
// run as root beside a gateway that runs as another user (docker exec) would
// else leave files which the gateway cannot read.
func matchOwner(path, dir string) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(dir)
	if err != nil {
		return
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		os.Lchown(path, int(owner.Uid), int(owner.Gid))
	}
}
