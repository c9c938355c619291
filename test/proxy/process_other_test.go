//go:build !linux

package proxy

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
