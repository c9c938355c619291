//go:build 386 || arm

package asowner

import "syscall"

// On these architectures, the calls without the suffix 32 take 16-bit ids.
const (
	sysSetfsuid  = syscall.SYS_SETFSUID32
	sysSetfsgid  = syscall.SYS_SETFSGID32
	sysSetgroups = syscall.SYS_SETGROUPS32
)
