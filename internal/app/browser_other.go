//go:build !unix

package app

import "os/exec"

func detach(*exec.Cmd) {}
