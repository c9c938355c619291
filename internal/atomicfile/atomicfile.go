// Package atomicfile replaces files atomically: a reader sees the whole old or the whole new file, even after
// a crash or a power loss.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Draft is the new file before it replaces the old one.
type Draft struct {
	*os.File        // open, of mode 0600
	Path     string // of the file to replace, with links followed if Options.FollowLink is set
}

// Options say how a file is replaced.
type Options struct {
	Mode fs.FileMode // of the new file; 0: 0600
	// FollowLink replaces the target of a symbolic link. Without it, Replace replaces the link itself.
	FollowLink bool
	// Prepare can change the draft, such as its owner or mode, after its content is written.
	Prepare func(*Draft) error
	// Check runs just before the draft replaces the file. If it fails, the old file stays.
	Check func(path string) error
}

// Replace replaces a file with data, or creates it.
func Replace(path string, data []byte, o Options) (err error) {
	if real, e := filepath.EvalSymlinks(path); o.FollowLink && e == nil {
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	draft := &Draft{f, path}
	placed := false
	defer func() {
		if !placed {
			_ = f.Close() // it may be closed already
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(data); err != nil {
		return err
	}
	if o.Mode != 0 {
		if err = f.Chmod(o.Mode); err != nil {
			return err
		}
	}
	if o.Prepare != nil {
		if err = o.Prepare(draft); err != nil {
			return err
		}
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if o.Check != nil {
		if err = o.Check(path); err != nil {
			return err
		}
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	placed = true
	if e := SyncFolder(filepath.Dir(path)); e != nil && !errors.Is(e, fs.ErrPermission) { // the folder may be writable but not readable
		return e
	}
	return nil
}

// SyncFolder makes the names in a folder survive a power loss. It does nothing if the system or the file system
// does not support that.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // NTFS journals names itself
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) {
		err = nil // some network file systems do not support it
	}
	return errors.Join(err, d.Close())
}
