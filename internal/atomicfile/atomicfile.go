// Package atomicfile replaces files: whoever reads one sees the old or the new one whole, also after a crash or a loss of power.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Draft is what is to take a file's place.
type Draft struct {
	*os.File        // open, of mode 0600
	Path     string // of the file; where it is a link, of what it leads to
}

// Options say how a file is replaced.
type Options struct {
	Mode fs.FileMode // of the new file; 0: 0600
	// FollowLink keeps a symbolic link and replaces what it leads to. Without it the link itself is replaced.
	FollowLink bool
	// Prepare changes the draft, as its owner or mode, once its content is on the disk.
	Prepare func(*Draft) error
	// Check is asked last, just before the draft takes the file's place. The old file stays where it fails.
	Check func(path string) error
}

// Replace writes a file.
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
	if e := SyncFolder(filepath.Dir(path)); e != nil && !errors.Is(e, fs.ErrPermission) { // one that may be written and not be read
		return e
	}
	return nil
}

// SyncFolder makes the names in a folder outlast a loss of power. Where the system or the file system cannot do that, it does nothing.
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
		err = nil // some network file systems know no such thing
	}
	return errors.Join(err, d.Close())
}
