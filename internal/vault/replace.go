package vault

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Replace writes a file as a whole with mode 0600: after a crash there is the old one or the new one.
func Replace(path string, data []byte) (err error) {
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(draft.Name())
		}
	}()
	_, err = draft.Write(data)
	if err == nil {
		err = draft.Sync()
	}
	if e := draft.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		return err
	}
	if dir, err := os.Open(filepath.Dir(path)); err == nil { // not all systems can do it
		_ = dir.Sync()
		_ = dir.Close()
	}
	return nil
}

// How long a change waits for another process; each holds the lock while it writes a small file.
const (
	lockPatience = 10 * time.Second
	lockRetry    = 5 * time.Millisecond
)

var errBusy = errors.New("another process is changing the credentials")

// lock keeps processes apart. The file stays: to remove it would let two of them hold the lock.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	for waited := time.Duration(0); ; waited += lockRetry {
		if err = tryLock(f); !errors.Is(err, errBusy) || waited >= lockPatience {
			break
		}
		time.Sleep(lockRetry)
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	return func() { _ = f.Close() }, nil // closing releases it
}
