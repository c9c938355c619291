//go:build !unix || solaris || aix

package access

import (
	"io/fs"
	"os"
)

const noFollow = 0

// tryLock does nothing here: within one process Pairing's own lock works, and the check of
// replaceFile detects other processes.
func tryLock(*os.File) error { return nil }

// keepGroup does nothing here: files on such systems have no group.
func keepGroup(*os.File, fs.FileInfo) error { return nil }
