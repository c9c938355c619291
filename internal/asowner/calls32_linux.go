//go:build 386 || arm

package asowner

import "syscall"

// The calls without 32 take ids of 16 bits here.
const (
	sysSetfsuid  = syscall.SYS_SETFSUID32
	sysSetfsgid  = syscall.SYS_SETFSGID32
	sysSetgroups = syscall.SYS_SETGROUPS32
)
