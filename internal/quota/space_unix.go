//go:build linux || darwin || freebsd

package quota

import "syscall"

// Space returns the free bytes for this process on the disk of a folder, and the size of the disk.
// ok is false if the system doesn't say.
func Space(path string) (free, total uint64, ok bool) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return 0, 0, false
	}
	block := uint64(st.Bsize)
	return uint64(max(st.Bavail, 0)) * block, st.Blocks * block, true
}
