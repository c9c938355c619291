//go:build unix

package setup

import (
	"os"
	"syscall"
)

// copyOwner gives a file to the owner of another, where root writes for somebody else.
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

// matchOwner gives a new file to the owner of its folder.
func matchOwner(path, dir string) { copyOwner(path, dir) }
