//go:build unix && !linux

package asowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

const nonblock = syscall.O_NONBLOCK

// of takes the nearest folder that is there for the answer: these systems have no rights of a thread, so root does not work
// for others at all.
func of(path string) (User, bool, error) {
	if os.Geteuid() != 0 {
		return User{}, false, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return User{}, false, err
	}
	for dir := abs; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return User{}, false, err
		}
		if err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
				u := User{UID: int(st.Uid), GID: int(st.Gid), Name: "uid " + strconv.Itoa(int(st.Uid))}
				if account, err := user.LookupId(strconv.Itoa(u.UID)); err == nil {
					u.Name, u.Home = account.Username, account.HomeDir
				}
				return u, true, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return User{}, false, nil
		}
	}
}

func runAs(_ *exec.Cmd, u User) error {
	return fmt.Errorf("%w: run this as %s, with: sudo -u %s", ErrOtherUser, u.Name, u.Name)
}

func do(path string, f func() error) error {
	u, other, err := of(path)
	if err != nil {
		return err
	}
	if other {
		return fmt.Errorf("%s: %w: run this as %s, with: sudo -u %s", path, ErrOtherUser, u.Name, u.Name)
	}
	return f()
}
