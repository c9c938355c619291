//go:build unix && !linux

package acme

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
