//go:build !linux

package media

// ours returns nil: this system doesn't report the owners.
func ours(string) error { return nil }
