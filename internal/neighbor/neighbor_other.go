//go:build !linux

package neighbor

func gateway(func(socket) bool) (Process, bool) { return Process{}, false }

func (p Process) root() (string, bool) { return "", false }
