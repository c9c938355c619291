//go:build unix

package setup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"hermes-mobile/internal/asowner"
)

// copyOwner gives a file to the owner of another, where root replaces a file of somebody else in a folder of its own. In a
// folder of that user the file is theirs already, and the group is one of theirs.
func copyOwner(path, like string) {
	if os.Geteuid() != 0 {
		return
	}
	if info, err := os.Stat(like); err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = os.Lchown(path, int(owner.Uid), int(owner.Gid))
		}
	}
}

// Hidden reports whether a Hermes home belongs to another account and its settings cannot be seen from this one.
func Hidden(home Home) bool {
	if os.Geteuid() == 0 {
		return false
	}
	info, err := os.Stat(home.Path)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) == os.Geteuid() {
		return false
	}
	for _, name := range []string{configFile, envFile} {
		if f, _, err := asowner.Open(filepath.Join(home.Path, name)); err == nil {
			_ = f.Close() // it was not even read
			return false
		}
	}
	return true
}
