package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"hermes-mobile/internal/quota"
)

// Bound makes a budget count everything in the store from now on: stored files, copies, and
// temporary files. counted is the result of [Store.Count]. Call it once, before the store is used.
func (s *Store) Bound(b *quota.Budget, counted int64) {
	s.budget = b
	b.Recount(0, counted)
}

// Recount corrects the count of the budget, because somebody else may have removed files. Files
// stored meanwhile may count twice until the next time.
func (s *Store) Recount(ctx context.Context) error {
	before := s.budget.Files()
	found, err := s.Count(ctx)
	if err != nil {
		return err
	}
	s.budget.Recount(before, found)
	return nil
}

// Count walks over the folder and returns the bytes that a budget counts for it.
func (s *Store) Count(ctx context.Context) (found int64, err error) {
	add := func(e fs.DirEntry) {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found += quota.Cost(info.Size())
		}
	}
	err = errors.Join(
		eachEntry(ctx, s.dir, add),
		eachEntry(ctx, s.incoming(), func(e fs.DirEntry) {
			if info, err := e.Info(); err == nil {
				found += info.Size() // counted while it is written
			}
		}),
		eachEntry(ctx, s.local(), func(e fs.DirEntry) {
			_ = eachEntry(ctx, filepath.Join(s.local(), e.Name()), add) // unless a sweep removes it right now
		}))
	if err != nil {
		return 0, fmt.Errorf("media: count files: %w", err)
	}
	return found, nil
}

// costOf returns what the budget counts for a file: 0 if it is missing or not a regular file.
func (s *Store) costOf(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return quota.Cost(info.Size())
}

// takeStep is how many bytes of a file of unknown size are counted at a time.
const takeStep = 1 << 20

// counting passes on written bytes while they fit the budget.
type counting struct {
	w       io.Writer
	take    func(int64) error
	written int64
	counted int64
}

func (c *counting) Write(p []byte) (int, error) {
	if need := c.written + int64(len(p)); need > c.counted {
		step := max(need-c.counted, takeStep)
		err := c.take(step)
		if err != nil { // near the end a smaller step may fit
			step = need - c.counted
			err = c.take(step)
		}
		if err != nil {
			return 0, err
		}
		c.counted += step
	}
	n, err := c.w.Write(p)
	c.written += int64(n)
	return n, err
}

// settle corrects the count to n bytes.
func (c *counting) settle(n int64) error {
	if n <= c.counted {
		return nil // the caller returns the excess
	}
	if err := c.take(n - c.counted); err != nil {
		return err
	}
	c.counted = n
	return nil
}
