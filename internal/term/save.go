package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// safeName turns the agent's name for a file into a safe one: no folder, no hidden file, no special
// characters, at most 120 bytes.
func safeName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, !unicode.IsPrint(r), strings.ContainsRune(`:*?"<>|`, r):
			return '_'
		}
		return r
	}, name)
	name = frame.Strip(name)                                      // fillers count as printable letters
	name = strings.TrimRight(strings.TrimLeft(name, ". -"), ". ") // not a dot file, not an option, nothing that Windows cuts off
	if name == "" {
		name = "file"
	}
	ext := filepath.Ext(name)
	if len(ext) > 16 {
		ext = ""
	}
	base := strings.TrimSuffix(name, ext)
	for len(base)+len(ext) > 120 {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	switch strings.ToUpper(base) { // names that Windows keeps for devices
	case "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "LPT1", "LPT2", "LPT3":
		base += "_"
	}
	return base + ext
}

// create creates a file under a free name: name.ext, name-2.ext and so on. It never follows a link
// or replaces a file.
func create(dir, name string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name = safeName(name)
	ext := filepath.Ext(name)
	for n := 1; n < 10_000; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
		}
		f, err := os.OpenFile(filepath.Join(dir, try), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("%s: too many files with this name", name)
}

// downloader is the part of a *device.Device that save uses.
type downloader interface {
	Download(context.Context, device.File, io.Writer) (int64, error)
}

// save stores a file and returns its path. It removes a partial file.
func save(ctx context.Context, d downloader, dir string, f device.File) (path string, err error) {
	if f.Err != nil {
		return "", f.Err
	}
	out, err := create(dir, f.Filename)
	if err != nil {
		return "", err
	}
	defer func() {
		err = errors.Join(err, out.Close())
		if err != nil {
			_ = os.Remove(out.Name())
			path = ""
		}
	}()
	_, err = d.Download(ctx, f, out)
	return out.Name(), err
}

// size formats a number of bytes.
func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
