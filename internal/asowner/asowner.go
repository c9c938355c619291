// Package asowner keeps root from following the links of other users.
//
// When root runs a command in another user's home, it reads and writes files in folders that this user
// controls. The user can put a link there to any file of the machine. So root does such work with the file
// rights of that user: a link then leads no further than the user could go anyway, and new files belong to
// the user.
//
// A process that is not root works with its own rights, and all functions are plain calls.
package asowner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
)

// User is the owner of a folder.
type User struct {
	UID, GID int
	Groups   []int // supplementary ones
	Name     string
	Home     string // empty: there is no account
}

// ErrOtherUser means that root would have to work in another user's folder, on a system where it can't take
// that user's rights.
var ErrOtherUser = errors.New("the folder belongs to another user")

// ErrNotRegular means that a path is a pipe, a device, or a folder instead of a file.
var ErrNotRegular = errors.New("not a regular file")

// ErrTooLarge means that a file is larger than its reader allows.
var ErrTooLarge = errors.New("the file is too large")

// Do calls f. If the process is root and another user controls path, f runs with the file rights of that user.
// f must not start goroutines or processes that depend on them.
func Do(path string, f func() error) error { return do(path, f) }

// Of returns the user who controls path. ok is false if only root does, or if the process is not root and has
// no rights to give up.
func Of(path string) (u User, ok bool, err error) { return of(path) }

// Open opens a regular file to read it, with the rights of the user who controls its path. It never waits: a pipe or a
// device is ErrNotRegular.
func Open(path string) (f *os.File, info fs.FileInfo, err error) {
	err = Do(path, func() error {
		if f, err = os.OpenFile(path, os.O_RDONLY|nonblock, 0); err != nil {
			return err
		}
		if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "read", Path: path, Err: ErrNotRegular}
		}
		if err != nil {
			_ = f.Close()
		}
		return err
	})
	return f, info, err
}

// ReadFile reads a file of at most limit bytes, opened as by Open.
func ReadFile(path string, limit int64) ([]byte, fs.FileInfo, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, info, err
	}
	defer func() { _ = f.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, info, err
	}
	if int64(len(data)) > limit {
		return nil, info, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: the limit is %d bytes", ErrTooLarge, limit)}
	}
	return data, info, nil
}

// RunAs makes a command run with the rights of the user who controls all these paths: root must not run files
// that others can write. It fails if several users control them.
func RunAs(cmd *exec.Cmd, paths ...string) error {
	var who *User
	for _, path := range paths {
		u, other, err := Of(path)
		if err != nil {
			return err
		}
		if other && who != nil && who.UID != u.UID {
			return fmt.Errorf("root does not run %s: it belongs to %s, but would run as %s", cmd.Path, u.Name, who.Name)
		}
		if other {
			who = &u
		}
	}
	if who == nil {
		return nil
	}
	if who.Home != "" {
		cmd.Env = append(cmd.Environ(), "HOME="+who.Home)
	}
	return runAs(cmd, *who)
}

// refused explains a permission error of work that root does with a user's rights.
func refused(err error, u User) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w (in folders of %s, root uses only the rights of %s: replace a link to another user's file with the file itself)", err, u.Name, u.Name)
}
