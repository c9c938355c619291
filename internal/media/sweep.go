package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hermes-mobile/internal/quota"
)

// sweepBatch is how many names of a folder are in memory at once.
const sweepBatch = 512

// Sweep removes the stored files that keep doesn't want and that were put or touched at least
// olderThan before now, with their local copies. It returns how many stored files it removed and
// how many bytes that freed, also together with an error: that of ctx, or of the first file that
// could not be removed. It still sweeps the others.
//
// It may run at any time. A file that is put again while keep decides becomes young and stays,
// because the age is checked last and in one step with the removal. olderThan must be longer than
// the time from Put until the caller's keep knows the file, and than the lifetime of a signed link.
//
// keep is called without a lock, one call at a time.
func (s *Store) Sweep(ctx context.Context, keep func(hash string) bool, olderThan time.Duration, now time.Time) (removed int, freed int64, err error) {
	var first error
	walk := func(dir string, visit func(fs.DirEntry) (int64, error)) {
		e := eachEntry(ctx, dir, func(entry fs.DirEntry) {
			n, err := visit(entry)
			freed += n
			if err != nil && first == nil {
				first = err
			}
		})
		if e != nil && first == nil {
			first = e
		}
	}
	walk(s.dir, func(e fs.DirEntry) (int64, error) {
		if !validHash(e.Name()) || keep(e.Name()) {
			return 0, nil
		}
		gone, n, err := s.removeOld(e.Name(), now.Add(-olderThan))
		if gone {
			removed++
		}
		return n, err
	})
	// Copies whose original was removed in another way, such as a crash between the two removals.
	walk(s.local(), func(e fs.DirEntry) (int64, error) {
		if !validHash(e.Name()) {
			return 0, nil
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.Has(e.Name()) {
			return 0, nil
		}
		return s.removeCopies(e.Name())
	})
	if first != nil {
		return removed, freed, fmt.Errorf("media: sweep: %w", first)
	}
	return removed, freed, nil
}

// removeOld removes a stored file that wasn't put or touched after limit.
func (s *Store) removeOld(hash string, limit time.Time) (gone bool, freed int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(s.file(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return false, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	if !info.Mode().IsRegular() || info.ModTime().After(limit) {
		return false, 0, nil
	}
	if err := os.Remove(s.file(hash)); err != nil {
		return false, 0, err
	}
	s.budget.Give(quota.Cost(info.Size()))
	freed, err = s.removeCopies(hash)
	return true, info.Size() + freed, err
}

// removeCopies removes the local copies of hash. Callers hold mu.
func (s *Store) removeCopies(hash string) (freed int64, err error) {
	dir := filepath.Join(s.local(), hash)
	copies, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	counted := int64(0)
	for _, c := range copies {
		if info, err := c.Info(); err == nil && info.Mode().IsRegular() {
			freed += info.Size()
			counted += quota.Cost(info.Size())
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return 0, err
	}
	s.budget.Give(counted)
	return freed, nil
}

// eachEntry calls visit for the entries of dir until ctx ends. It reads names in batches, since a
// store may have very many.
func eachEntry(ctx context.Context, dir string, visit func(fs.DirEntry)) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for {
		entries, err := d.ReadDir(sweepBatch)
		for _, e := range entries {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			visit(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
