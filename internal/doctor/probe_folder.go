package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/quota"
)

// holders lists the files in the data folder that contain secrets or messages.
var holders = []string{"tokens", "relay.env", "vapid.json", "hermes-mobile.db", "hermes-mobile.db-wal"}

// ProbeFolder probes the data folder. A folder that does not exist yet is fine.
func ProbeFolder(path string) *Folder {
	d := &Folder{Path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return d
	}
	d.Unwrit = write(path)
	if free, total, ok := quota.Space(path); ok {
		d.Free, d.Total = free, total
	}
	for _, name := range holders {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			continue
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			d.Readable = append(d.Readable, filepath.Join(path, name))
		}
		if info.ModTime().After(d.Future) {
			d.Future, d.FutureOf = info.ModTime(), filepath.Join(path, name)
		}
	}
	return d
}

// write tries to create a file, which is the only reliable test.
func write(folder string) error {
	f, err := os.CreateTemp(folder, ".doctor-*")
	if err != nil {
		if pe := (*os.PathError)(nil); errors.As(err, &pe) {
			return pe.Err
		}
		return err
	}
	_ = f.Close()
	return os.Remove(f.Name())
}

// StillTrue removes the warnings that no longer apply: those about files that others can no longer read.
func StillTrue(warnings []config.Warning) []config.Warning {
	return slices.DeleteFunc(slices.Clone(warnings), func(w config.Warning) bool {
		info, err := os.Stat(w.File)
		return w.File != "" && (err != nil || info.Mode().Perm()&0o044 == 0)
	})
}
