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

// copyOwner gives a file the owner of another file. It matters when root replaces another user's
// file in a folder of root. In a folder of that user, the new file already belongs to them and to
// one of their groups.
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

// Hidden reports whether a Hermes home belongs to another account, and this one can't read its
// settings.
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
