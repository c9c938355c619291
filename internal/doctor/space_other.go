//go:build !linux && !darwin && !freebsd

package doctor

// space is not asked for here.
func space(string) (free, total uint64, ok bool) { return 0, 0, false }
