//go:build !unix

package asowner

// These systems have no root that may access every folder.

import "os/exec"

const nonblock = 0

func of(string) (User, bool, error) { return User{}, false, nil }

func runAs(*exec.Cmd, User) error { return nil }

func do(_ string, f func() error) error { return f() }
