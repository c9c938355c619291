//go:build !linux

package doctor

// PortHolder names the program that listens on a port of an address; there is no plain way to ask here.
func PortHolder(string, int) string { return "" }
