//go:build !unix

package setup

// copyOwner does nothing: these systems have no file owners to copy.
func copyOwner(string, string) {}

// Hidden returns false: these systems don't report the owner of a folder.
func Hidden(Home) bool { return false }
