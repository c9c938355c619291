package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"hermes-mobile/internal/asowner"
)

// probe finds out what already exists.
func (a *Apart) probe() error {
	owner, other, err := asowner.Of(a.Pairing)
	if err != nil {
		return err
	}
	a.Hermes = "root"
	if other {
		if owner.Home == "" {
			return fmt.Errorf("%w: %s belongs to %s, which has no account on this machine", ErrApart, a.Pairing, owner.Name)
		}
		a.Hermes, a.hermesUID, a.hermesGID = owner.Name, owner.UID, owner.GID
	}
	if a.Hermes == a.Account {
		return fmt.Errorf("%w: Hermes already uses the account %s; run Hermes under another one", ErrApart, a.Account)
	}
	for _, name := range []string{a.Hermes, a.Account} {
		if strings.ContainsAny(name, " \t\"'\\%$") {
			return fmt.Errorf("%w: a unit file can't contain %q", ErrApart, name)
		}
	}
	account, err := user.Lookup(a.Account)
	if err != nil {
		_, err := os.Lstat(a.Data)
		a.missing.files = err == nil
		a.missing.account, a.missing.data, a.missing.shared, a.missing.member = true, true, true, other
		return nil
	}
	uid, gid, err := ids(account)
	if err != nil {
		return err
	}
	if other {
		a.missing.member = !contains(append([]int{owner.GID}, owner.Groups...), gid)
	}
	info, err := os.Stat(a.Data)
	st, ok := statOf(info, err)
	a.missing.files = ok && int(st.Uid) != uid
	a.missing.data = !ok || int(st.Uid) != uid || int(st.Gid) != gid || info.Mode().Perm()&0o077 != 0o010
	a.missing.shared = true
	return asowner.Do(a.Pairing, func() error {
		info, err := os.Stat(a.Pairing)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		st, ok := statOf(info, err)
		if !ok {
			return err
		}
		a.missing.shared = int(st.Gid) != gid || info.Mode()&fs.ModeSetgid == 0 || info.Mode().Perm()&0o077 != 0o070
		return nil
	})
}

func contains(list []int, n int) bool {
	for _, x := range list {
		if x == n {
			return true
		}
	}
	return false
}

func ids(account *user.User) (uid, gid int, err error) {
	uid, err1 := strconv.Atoi(account.Uid)
	gid, err2 := strconv.Atoi(account.Gid)
	return uid, gid, errors.Join(err1, err2)
}

func statOf(info fs.FileInfo, err error) (*syscall.Stat_t, bool) {
	if err != nil {
		return nil, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

func (a *Apart) prepare(ctx context.Context) error {
	if a.missing.account {
		if err := run(ctx, a.useradd()); err != nil {
			return err
		}
	}
	if a.missing.member {
		if err := run(ctx, a.usermod()); err != nil {
			return err
		}
	}
	if a.missing.data {
		account, err := user.Lookup(a.Account)
		if err != nil {
			return err
		}
		uid, gid, err := ids(account)
		if err != nil {
			return err
		}
		// Only its parent must exist: a folder created for a mistyped path would stay.
		if err := os.Mkdir(a.Data, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		dir, err := os.OpenFile(a.Data, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer func() { _ = dir.Close() }() // nothing was written to it
		if err := errors.Join(dir.Chown(uid, gid), dir.Chmod(0o710)); err != nil || !a.missing.files {
			return err
		}
		return chownAll(a.Data, uid, gid)
	}
	return nil
}

// chownAll gives everything in a folder to a user. It follows no link out of the folder, and skips files with
// a second hard link, which may belong to another user.
func chownAll(dir string, uid, gid int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written to it
	return fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == "." {
			return err
		}
		info, err := d.Info()
		if st, ok := statOf(info, err); !ok || info.Mode().IsRegular() && st.Nlink > 1 {
			return err
		}
		return root.Lchown(path, uid, gid)
	})
}

func run(ctx context.Context, command []string) error {
	path, err := exec.LookPath(command[0])
	if err != nil {
		path = filepath.Join("/usr/sbin", command[0]) // not in the PATH of su
	}
	if out, err := exec.CommandContext(ctx, path, command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// before returns the present state of the pairing folder.
func (a *Apart) before() (*share, error) {
	s := &share{Path: a.Pairing, Account: a.Account, GID: a.hermesGID, Mode: 0o700}
	err := asowner.Do(a.Pairing, func() error {
		info, err := os.Stat(a.Pairing)
		if st, ok := statOf(info, err); ok {
			s.GID, s.Mode = int(st.Gid), info.Mode()&(fs.ModePerm|fs.ModeSetgid)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	return s, err
}

// share opens the pairing folder and its files to the server's group.
func (a *Apart) share() error {
	account, err := user.Lookup(a.Account)
	if err != nil {
		return err
	}
	uid, gid, err := ids(account)
	if err != nil {
		return err
	}
	return eachFile(a.Pairing, func(folder *os.File, owner int) error {
		return errors.Join(folder.Chown(-1, gid), folder.Chmod(0o770|fs.ModeSetgid))
	}, func(f *os.File, owner, folderOwner int) error {
		if owner != folderOwner && owner != uid {
			return nil
		}
		return errors.Join(f.Chown(-1, gid), f.Chmod(0o660))
	})
}

// undo revokes the group's access to a folder.
func (s *share) undo() error {
	uid := -1
	if account, err := user.Lookup(s.Account); err == nil {
		uid, _, _ = ids(account) // without an account, no file belongs to it
	}
	return eachFile(s.Path, func(folder *os.File, _ int) error {
		return errors.Join(folder.Chown(-1, s.GID), folder.Chmod(s.Mode))
	}, func(f *os.File, owner, folderOwner int) error {
		if owner != folderOwner && owner != uid {
			return nil
		}
		return errors.Join(f.Chown(folderOwner, s.GID), f.Chmod(0o600))
	})
}

// eachFile calls one function for a folder, which it creates if needed, and another for each regular file in
// it. Root changes owners and modes there while other users can replace the folder's content. So eachFile
// keeps what it checked open, follows no link, and skips files with a second hard link.
func eachFile(dir string, folder func(f *os.File, owner int) error, file func(f *os.File, owner, folderOwner int) error) error {
	var d *os.File
	if err := asowner.Do(dir, func() (err error) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		d, err = os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		return err
	}); err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written to it
	info, err := d.Stat()
	st, ok := statOf(info, err)
	if !ok {
		return err
	}
	owner := int(st.Uid)
	if u, other, err := asowner.Of(dir); err != nil || other && u.UID != owner || !other && owner != 0 {
		return errors.Join(err, fmt.Errorf("%s belongs to uid %d, but the folders above it belong to another account", dir, owner))
	}
	if err := folder(d, owner); err != nil {
		return err
	}
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		fd, err := syscall.Openat(int(d.Fd()), name, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
		if err != nil {
			continue // a link, or gone
		}
		f := os.NewFile(uintptr(fd), filepath.Join(dir, name))
		info, err := f.Stat()
		if st, ok := statOf(info, err); ok && info.Mode().IsRegular() && st.Nlink == 1 {
			err = file(f, int(st.Uid), owner)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}
