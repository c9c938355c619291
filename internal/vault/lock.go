package vault

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// How long a change waits for another process. Each holds the lock while it writes a small file.
const (
	lockTimeout = 10 * time.Second
	lockRetry   = 5 * time.Millisecond
)

var errBusy = errors.New("another process is changing the credentials")

// lock separates processes. The file stays: removing it would let two of them hold the lock.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the credentials: %w", err)
	}
	for waited := time.Duration(0); ; waited += lockRetry {
		if err = tryLock(f); !errors.Is(err, errBusy) || waited >= lockTimeout {
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
