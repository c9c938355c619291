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

// LocalCopy returns the absolute path of a copy of a stored file, with mode
// 0600 (0640 where the folder above the store is open to its group and to
// nobody else: mode 0710) and the name of filename as [CleanName] makes it, for an agent on this
// machine that wants a path. A name without extension gets the one of the
// content, when that has a signature. Asking again replaces the copy, so that
// it is whole and unchanged again; a reader of the former one is not disturbed.
//
// Nobody but this account and root can change what is at the path; where the
// folders above it allow that, it is an error.
//
// It goes when the original is swept, whose age begins anew here. For a hash
// that is not stored the error is fs.ErrNotExist by errors.Is.
//
// It is a copy and not a hard link: an agent's tool that edits in place would
// change the stored file, whose name would then lie about its content. File
// systems with shared blocks make the copy cheap.
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
	// It belongs to a message that was accepted, so it may use more of the
	// budget than a new file.
	w := &counting{w: t, take: s.budget.TakeAccepted}
	fail := func(err error) (string, error) {
		discard(t)
		s.budget.Give(w.counted)
		return "", fmt.Errorf("media: local copy: %w", err)
	}
	// No sync: after a crash the agent is asked again, which copies again.
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
	// Without links: where they lead could be changed after it was looked at.
	dir, err := filepath.EvalSymlinks(s.local())
	if err != nil {
		return fail(err)
	}
	to := filepath.Join(dir, hash, name)
	if err := ours(dir); err != nil {
		return fail(fmt.Errorf("an agent is handed no path that others can change: %w", err))
	}
	if err := s.place(t.Name(), to, hash); err != nil {
		return fail(err)
	}
	s.budget.Give(w.counted - quota.Cost(n))
	return to, nil
}

// place moves a finished copy to its path unless the original was swept while
// it was made: nothing would ever remove the copy then.
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
