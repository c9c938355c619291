package media

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/gabriel-vasile/mimetype"

	"hermes-mobile/internal/quota"
)

// LocalCopy returns the absolute path of a copy of a stored file, for an agent on this machine that
// needs a path. The copy's name is filename after [CleanName]. A name without extension gets the
// one of the content, if that has a signature. Its mode is 0600, or 0640 if the folder above the
// store is open to its group and nobody else (mode 0710). Calling it again replaces the copy with
// an unchanged one. A reader of the former copy isn't disturbed.
//
// Only this account and root can change what is at the path. If the folders above it allow more,
// LocalCopy returns an error.
//
// The copy is removed when a sweep removes the original, whose age starts over here. For a hash
// that isn't stored the error is fs.ErrNotExist.
//
// It is a copy and not a hard link: a tool that edits in place would change the stored file, whose
// name would then not match its content. File systems with shared blocks make the copy cheap.
func (s *Store) LocalCopy(hash, filename string) (string, error) {
	src, err := s.Open(hash)
	if err != nil {
		return "", err
	}
	defer src.Close()
	name := CleanName(filename)
	if ext := path.Ext(name); ext == "" || ext == emptyExt {
		found, err := mimetype.DetectReader(src)
		if err != nil {
			return "", fmt.Errorf("media: local copy: %w", err)
		}
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			return "", fmt.Errorf("media: local copy: %w", err)
		}
		name = cut(name, maxName-len(found.Extension())) + found.Extension()
	}
	t, err := s.temp()
	if err != nil {
		return "", fmt.Errorf("media: local copy: %w", err)
	}
	// The file belongs to a message that was accepted, so it may use more of the budget than a new
	// file.
	w := &counting{w: t, take: s.budget.TakeAccepted}
	fail := func(err error) (string, error) {
		discard(t)
		s.budget.Give(w.counted)
		return "", fmt.Errorf("media: local copy: %w", err)
	}
	// No sync: after a crash the agent is called again, which copies again.
	n, err := io.Copy(w, src)
	if err == nil {
		err = w.settle(quota.Cost(n))
	}
	if err != nil {
		return fail(err)
	}
	if s.group {
		if err := t.Chmod(0o640); err != nil {
			return fail(err)
		}
	}
	if err := t.Close(); err != nil {
		return fail(err)
	}
	// Resolve links: their targets could change after the check.
	dir, err := filepath.EvalSymlinks(s.local())
	if err != nil {
		return fail(err)
	}
	to := filepath.Join(dir, hash, name)
	if err := ours(dir); err != nil {
		return fail(fmt.Errorf("the path isn't safe for an agent, because others can change it: %w", err))
	}
	if err := s.place(t.Name(), to, hash); err != nil {
		return fail(err)
	}
	s.budget.Give(w.counted - quota.Cost(n))
	return to, nil
}

// place moves a finished copy to its path, unless a sweep removed the original meanwhile: nothing
// would ever remove the copy.
func (s *Store) place(from, to, hash string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err := os.Chtimes(s.file(hash), now, now); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(to), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.group {
		if err := os.Chmod(filepath.Dir(to), 0o710); err != nil {
			return err
		}
	}
	there := s.costOf(to)
	if err := os.Rename(from, to); err != nil {
		return err
	}
	s.budget.Give(there)
	return nil
}
