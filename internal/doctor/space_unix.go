//go:build linux || darwin || freebsd

package doctor

import "syscall"

// space is what is free for us on the disk of a folder, and what it has.
func space(path string) (free, total uint64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, false
	}
	block := uint64(st.Bsize)
	return uint64(max(st.Bavail, 0)) * block, st.Blocks * block, true
}
