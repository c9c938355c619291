package cert

import (
	"context"
	"sync"

	"github.com/caddyserver/certmagic"
)

// storage stores certmagic's files. Its locks are in memory: only one server uses the folder, and each lock file
// would leave a goroutine behind.
type storage struct {
	*certmagic.FileStorage
	mu    sync.Mutex
	locks map[string]chan struct{}
}

func newStorage(dir string) *storage {
	return &storage{FileStorage: &certmagic.FileStorage{Path: dir}, locks: map[string]chan struct{}{}}
}

func (s *storage) lock(name string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.locks[name] == nil {
		s.locks[name] = make(chan struct{}, 1)
	}
	return s.locks[name]
}

// Lock waits for the lock of a name.
func (s *storage) Lock(ctx context.Context, name string) error {
	select {
	case s.lock(name) <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryLock acquires the lock of a name if it is free.
func (s *storage) TryLock(_ context.Context, name string) (bool, error) {
	select {
	case s.lock(name) <- struct{}{}:
		return true, nil
	default:
		return false, nil
	}
}

// Unlock releases the lock of a name.
func (s *storage) Unlock(_ context.Context, name string) error {
	<-s.lock(name)
	return nil
}
