//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// outliveReaders keeps the server running when the reader of its output exits. By default a write to
// such a pipe kills a Go program with SIGPIPE: a dead log rotator, a restarted journald, or the end of
// "| tee" would stop the server. The signal is caught, not ignored, because child processes inherit an
// ignored signal.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
