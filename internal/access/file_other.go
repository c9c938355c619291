//go:build !unix || solaris || aix

package access

import (
	"io/fs"
	"os"
)

const noFollow = 0

// tryLock does nothing here: within one process Pairing's own lock holds, and
// replaceFile's check notices other processes.
func tryLock(*os.File) error { return nil }

// keepGroup does nothing here: files of such systems have no group.
func keepGroup(*os.File, fs.FileInfo) error { return nil }
