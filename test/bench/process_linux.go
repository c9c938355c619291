package main

import (
	"os/exec"
	"syscall"
)

// dieWithParent sees to it that no server is left when this program is killed.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
