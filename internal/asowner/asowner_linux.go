package asowner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const nonblock = syscall.O_NONBLOCK

// maxLinks is the maximum number of links in a path, as in the kernel.
const maxLinks = 40

func of(path string) (User, bool, error) {
	if os.Geteuid() != 0 {
		return User{}, false, nil
	}
	info, err := controller(path)
	if err != nil || info == nil {
		return User{}, false, err
	}
	return userOf(info), true, nil
}

// controller returns the first folder or link along a path that belongs to another user. That user
// controls everything below it, whoever owns it. Nil means that only root can change the path. The
// file at its end may belong to any user.
func controller(path string) (*syscall.Stat_t, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	at, rest, links := "/", parts(abs), 0
	for len(rest) > 0 {
		name := filepath.Join(at, rest[0])
		info, err := os.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil, fmt.Errorf("%s: unknown owner", name)
		}
		if st.Uid != 0 && (info.IsDir() || info.Mode()&fs.ModeSymlink != 0) {
			return st, nil
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			at = name
			continue
		}
		if links++; links > maxLinks {
			return nil, &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		target, err := os.Readlink(name)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		// controller checks each part of the target. ".." leads up from the folder of the link.
		rest = append(parts(target), rest...)
	}
	return nil, nil
}

// parts returns the names in a path.
func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// userOf returns the owner of a folder or link. An owner without an account, as in a container,
// gets the folder's group.
func userOf(st *syscall.Stat_t) User {
	u := User{UID: int(st.Uid), GID: int(st.Gid), Name: "uid " + strconv.Itoa(int(st.Uid))}
	if account, err := user.LookupId(strconv.Itoa(u.UID)); err == nil {
		u.Name, u.Home = account.Username, account.HomeDir
		if gid, err := strconv.Atoi(account.Gid); err == nil {
			u.GID = gid
		}
		groups, _ := account.GroupIds() // without them the user has fewer rights
		for _, g := range groups {
			if gid, err := strconv.Atoi(g); err == nil && gid != u.GID {
				u.Groups = append(u.Groups, gid)
			}
		}
	}
	return u
}

func do(path string, f func() error) error {
	if os.Geteuid() != 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if current(sysSetfsuid) != 0 { // f runs inside another Do, and keeps its user
		return f()
	}
	u, other, err := of(path)
	if err != nil {
		return err
	}
	if !other {
		return f()
	}
	back, err := u.become()
	if err != nil {
		return fmt.Errorf("switch to the file rights of %s, who owns the folder: %w", u.Name, err)
	}
	defer back()
	return refused(f(), u)
}

// become gives this thread, and no other, the file rights of a user. Go starts no new thread from a
// locked one, so none inherits them. back restores the rights of root.
func (u User) become() (back func(), err error) {
	before, err := syscall.Getgroups()
	if err != nil {
		return nil, err
	}
	gid := current(sysSetfsgid)
	back = func() {
		// The user id comes first, because only root may change the groups.
		if set(sysSetfsuid, 0) != nil || set(sysSetfsgid, gid) != nil || setGroups(before) != nil {
			panic("asowner: cannot restore the rights of root") // the thread must not run any other code
		}
	}
	if err := setGroups(u.Groups); err != nil {
		return nil, err
	}
	if err := errors.Join(set(sysSetfsgid, u.GID), set(sysSetfsuid, u.UID)); err != nil {
		back()
		return nil, err
	}
	return back, nil
}

func runAs(cmd *exec.Cmd, u User) error {
	groups := make([]uint32, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = uint32(g)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), Groups: groups}}
	return nil
}

// current returns an id of this thread. The call with an invalid id changes nothing and returns the
// current one.
func current(call uintptr) int {
	id, _, _ := syscall.RawSyscall(call, ^uintptr(0), 0, 0)
	return int(id)
}

// set changes an id of this thread. The call itself reports no failure, so set compares the id
// afterwards.
func set(call uintptr, id int) error {
	_, _, _ = syscall.RawSyscall(call, uintptr(id), 0, 0)
	if current(call) != id {
		return syscall.EPERM
	}
	return nil
}

// setGroups sets the groups of this thread. syscall.Setgroups would set them for all threads.
func setGroups(gids []int) error {
	list := make([]uint32, len(gids)+1) // one longer, because an empty slice has no address to pass
	for i, g := range gids {
		list[i] = uint32(g)
	}
	if _, _, errno := syscall.RawSyscall(sysSetgroups, uintptr(len(gids)), uintptr(unsafe.Pointer(&list[0])), 0); errno != 0 {
		return errno
	}
	return nil
}
