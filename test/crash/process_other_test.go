//go:build unix && !linux

package crash

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
