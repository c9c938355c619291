//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// outliveReaders lets a server go on where nobody reads its output any more. A write to such a pipe ends a Go program by SIGPIPE
// otherwise: a log rotator that died, a restarted journald or the end of "| tee" would take the server with it. The signal is caught
// and not ignored, since programs that are started would inherit that.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
