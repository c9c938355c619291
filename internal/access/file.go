package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/atomicfile"
)

// maxFile bounds what is read into memory. A pairing file has a few kilobytes.
const maxFile = 16 << 20

// lockTimeout is how long a change waits for another process of ours. Each holds the lock for a few
// milliseconds.
const (
	lockTimeout = 5 * time.Second
	lockRetry   = 5 * time.Millisecond
)

// ErrBusy reports that another process held a lock for too long. Try again.
var ErrBusy = errors.New("another process is changing the file")

// errChanged reports that another process wrote the file since it was read.
var errChanged = errors.New("the file was changed by another process")

// readFile reads a whole file. The info is that of the file it read, even if another replaces it
// meanwhile.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	return asowner.ReadFile(path, maxFile)
}

// replaceFile replaces a whole file. Its mode is 0600, or what mode makes of it. A symbolic link
// stays one, as with Hermes. It calls check just before the new file takes its place. If check
// fails, it returns the error and the old file stays.
func replaceFile(path string, data []byte, mode func(*atomicfile.Draft) error, check func() error) error {
	o := atomicfile.Options{FollowLink: true, Prepare: mode}
	if check != nil {
		o.Check = func(string) error { return check() }
	}
	return asowner.Do(path, func() error { return atomicfile.Replace(path, data, o) })
}

// groupRights are read and write for a file's group.
const groupRights = 0o060

// Shared reports whether accounts share a folder by its group: new files get that group (setgid),
// and its members may write.
func Shared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && shares(info)
}

func shares(dir fs.FileInfo) bool {
	return dir.IsDir() && dir.Mode()&fs.ModeSetgid != 0 && dir.Mode().Perm()&0o070 == 0o070
}

// keepMode sets the mode and group of a file's draft: accounts that share the folder may read and
// write it, and the group of a replaced file keeps its rights. Others never have any.
func keepMode(draft *atomicfile.Draft) error {
	mode := fs.FileMode(0o600)
	if Shared(filepath.Dir(draft.Path)) {
		return draft.Chmod(mode | groupRights)
	}
	old, err := statFile(draft.Path)
	if err != nil || old == nil || old.Mode().Perm()&groupRights == 0 {
		return err
	}
	if err := keepGroup(draft.File, old); err != nil {
		return nil // another group must not get these rights
	}
	return draft.Chmod(mode | old.Mode().Perm()&groupRights)
}

// sameFile reports whether two infos of a path are of the same, unchanged file. Nil stands for a
// missing file. The mode counts, since it decides who may read.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// statFile is os.Stat with nil for a missing file.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// lockFile takes the lock that separates our processes (serve and the commands). Hermes takes no
// lock between processes, so this one is only ours. The check of replaceFile separates us from
// Hermes. The file is left behind: removing it would let two processes hold the lock. Its name must
// not end in .json, because Hermes reads all of those.
func lockFile(path string) (unlock func(), err error) {
	var f *os.File
	err = asowner.Do(path, func() (err error) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
		if err == nil && Shared(filepath.Dir(path)) {
			_ = f.Chmod(0o600 | groupRights) // a file of the other account already has this mode
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += lockRetry {
		err = tryLock(f)
		if !errors.Is(err, ErrBusy) || waited >= lockTimeout {
			break
		}
		time.Sleep(lockRetry)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil // closing releases the lock
}
