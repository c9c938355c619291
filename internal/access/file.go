package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hermes-mobile/internal/asowner"
)

// maxFile bounds what is read into memory; a pairing file has a few kilobytes.
const maxFile = 16 << 20

// lockPatience is how long a change waits for another process of ours. Each
// holds the lock for a few milliseconds.
const (
	lockPatience = 5 * time.Second
	lockRetry    = 5 * time.Millisecond
)

// ErrBusy says that another process held a lock for too long; try again.
var ErrBusy = errors.New("another process is changing the file")

// errChanged says that somebody else wrote the file since it was read.
var errChanged = errors.New("the file was changed by another process")

// readFile reads a whole file, and says which one it was: the info is that of
// the file read even where another is put in its place meanwhile.
func readFile(path string) ([]byte, fs.FileInfo, error) {
	return asowner.ReadFile(path, maxFile)
}

// replaceFile writes a file as a whole: whoever reads it sees the old or the
// new one. Its mode is 0600, or what mode makes of it. A symbolic link stays
// one, as with Hermes. The check is asked just before the new file takes its
// place; its error is returned and the old one stays.
func replaceFile(path string, data []byte, mode func(draft *os.File, path string) error, check func() error) error {
	return asowner.Do(path, func() error { return replace(path, data, mode, check) })
}

func replace(path string, data []byte, mode func(*os.File, string) error, check func() error) (err error) {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	draft, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(draft.Name())
		}
	}()
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	if err == nil && mode != nil {
		err = mode(draft, path)
	}
	if e := draft.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	if err := os.Rename(draft.Name(), path); err != nil {
		return err
	}
	// So that a revocation survives a loss of power. Not all systems can do it.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}

// groupRights are read and write for a file's group.
const groupRights = 0o060

// Shared reports whether a folder is shared between accounts by its group: new
// files get that group (setgid), and its members may write.
func Shared(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && shares(info)
}

func shares(dir fs.FileInfo) bool {
	return dir.IsDir() && dir.Mode()&fs.ModeSetgid != 0 && dir.Mode().Perm()&0o070 == 0o070
}

// keepMode gives the draft of a file its mode and group: those who share the
// folder may read and write it, and the group of a file that is replaced keeps
// its rights. Others never have any.
func keepMode(draft *os.File, path string) error {
	mode := fs.FileMode(0o600)
	if Shared(filepath.Dir(path)) {
		return draft.Chmod(mode | groupRights)
	}
	old, err := statFile(path)
	if err != nil || old == nil || old.Mode().Perm()&groupRights == 0 {
		return err
	}
	if err := keepGroup(draft, old); err != nil {
		return nil // another group must not get these rights
	}
	return draft.Chmod(mode | old.Mode().Perm()&groupRights)
}

// sameFile says whether two looks at a path saw the same file, unchanged. Nil
// stands for a file that is not there. The mode counts since it decides who
// may read.
func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Size() == b.Size() && a.Mode() == b.Mode() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// statFile is os.Stat with nil for a file that is not there.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return info, err
}

// lockFile takes the lock that keeps processes of ours apart (serve and the
// commands). Hermes takes no lock between processes, so this one is only ours;
// replaceFile's check is what keeps us apart from Hermes. The file is left
// behind: removing it would let two hold the lock. Its name must not end in
// .json, since Hermes looks at all of these.
func lockFile(path string) (unlock func(), err error) {
	var f *os.File
	err = asowner.Do(path, func() (err error) {
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
		if err == nil && Shared(filepath.Dir(path)) {
			_ = f.Chmod(0o600 | groupRights) // one of the other account has it already
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for waited := time.Duration(0); ; waited += lockRetry {
		err = tryLock(f)
		if !errors.Is(err, ErrBusy) || waited >= lockPatience {
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
