//go:build !unix

package setup

// Such systems have no owner to give a file to.

func copyOwner(string, string)  {}
func matchOwner(string, string) {}
