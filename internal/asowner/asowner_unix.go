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

// of returns the owner of the nearest folder that exists. That is enough here: these systems have
// no rights per thread, so root never works in the folders of other users.
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
