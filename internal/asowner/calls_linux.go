//go:build !386 && !arm

package asowner

import "syscall"

const (
	sysSetfsuid  = syscall.SYS_SETFSUID
	sysSetfsgid  = syscall.SYS_SETFSGID
	sysSetgroups = syscall.SYS_SETGROUPS
)
