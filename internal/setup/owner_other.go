//go:build !unix

package setup

// copyOwner does nothing: such systems have no owner to give a file to.
func copyOwner(string, string) {}

// Hidden: such systems do not say whose a folder is.
func Hidden(Home) bool { return false }
