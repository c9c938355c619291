package media

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/atomicfile"
	"hermes-mobile/internal/quota"
)

// File names a stored file.
type File struct {
	// Hash is the SHA-256 of the content, 64 lower-case hex digits.
	Hash string
	// Size is in bytes.
	Size int64
}

// ErrHash is returned for a hash that is not 64 lower-case hex digits. Nothing
// else ever becomes part of a path.
var ErrHash = errors.New("media: not a SHA-256 in hex")

const (
	incomingDir = "incoming" // temporary files, same file system as the stored ones
	localDir    = "local"    // copies under real names, see LocalCopy
	tempSuffix  = ".part"
)

// Store keeps files by the hash of their content in one folder:
//
//	<hash>              a stored file, never changed once it is there
//	incoming/*.part     files being written, and spooled uploads
//	local/<hash>/<name> copies with a real name
//
// A stored file appears by a rename only after its bytes were synced, and Put
// returns only after the folder was synced too. So a crash at any moment leaves
// either no file under the hash or the whole one, and what Put reported is
// there after it. All methods are safe for concurrent use; one process at a
// time may use the folder.
type Store struct {
	dir string
	// mu makes "see that a file is there and rejuvenate it" one step towards
	// the sweep's "see that it is old and remove it". It is never held while
	// content is read or written.
	mu sync.Mutex
	// unfinished is how many bytes all assemblers hold in memory.
	unfinished atomic.Int64
	// budget counts what is in the folder; nil: it may hold any number of bytes.
	budget *quota.Budget
	// create makes a temporary file; a test puts a full disk here.
	create func(dir, pattern string) (*os.File, error)
	// group says that local copies are for the group of this process, too: an agent that has another account.
	group bool
}

// OpenStore opens the store in dir. It makes the folder with mode 0700 when it
// is missing and removes temporary files that an earlier process left.
func OpenStore(dir string) (*Store, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	s := &Store{dir: abs, create: os.CreateTemp}
	for _, d := range []string{filepath.Join(abs, incomingDir), filepath.Join(abs, localDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("media: open store: %w", err)
		}
	}
	if s.group = opened(filepath.Dir(abs)); s.group {
		for _, d := range []string{abs, filepath.Join(abs, localDir)} {
			if err := os.Chmod(d, 0o710); err != nil { // through it, not into its list
				return nil, fmt.Errorf("media: open store: %w", err)
			}
		}
	}
	// Only names of our own making go, in case dir is not what was meant.
	left, err := filepath.Glob(filepath.Join(escapeGlob(s.incoming()), "*"+tempSuffix))
	if err != nil {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	for _, p := range left {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("media: remove temporary file: %w", err)
		}
	}
	// The folder itself must survive a crash as much as what is in it. One that
	// somebody else made for us may lie where we cannot read.
	if err := atomicfile.SyncFolder(filepath.Dir(abs)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	if err := atomicfile.SyncFolder(abs); err != nil {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	return s, nil
}

// opened reports whether the owner has opened the folder above the store to its group, and so wants it shared.
func opened(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.Mode().Perm()&0o077 == 0o010
}

// Put stores b durably. Content that is stored already is one file; its age
// for [Store.Sweep] begins anew. Where there is no room for b the error is a
// [*quota.Full], wrapped.
func (s *Store) Put(b []byte) (File, error) {
	sum := sha256.Sum256(b)
	f := File{Hash: hex.EncodeToString(sum[:]), Size: int64(len(b))}
	if s.renew(f) {
		return s.settle(f)
	}
	counted := quota.Cost(f.Size)
	if err := s.budget.Take(counted); err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	t, err := s.temp()
	if err != nil {
		s.budget.Give(counted)
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	_, err = t.Write(b)
	return s.adopt(t, f, counted, err)
}

// PutReader stores what r gives up to its end, as Put does. More than max bytes
// are refused with a [*Refusal] that is TooBig; max of 0 or less is no limit.
// An error of r is returned wrapped. Where there is no room for the file, that
// shows as soon as the room is used up, and not at the end of r.
func (s *Store) PutReader(r io.Reader, max int64) (File, error) {
	t, err := s.temp()
	if err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	if max > 0 {
		r = io.LimitReader(r, max+1)
	}
	h := sha256.New()
	w := &counting{w: io.MultiWriter(t, h), take: s.budget.Take}
	n, err := io.Copy(w, r)
	if err == nil && max > 0 && n > max {
		discard(t)
		s.budget.Give(w.counted)
		return File{}, tooBig("A file may have at most " + strconv.FormatInt(max, 10) + " bytes.")
	}
	if err == nil {
		err = w.settle(quota.Cost(n))
	}
	return s.adopt(t, File{Hash: hex.EncodeToString(h.Sum(nil)), Size: n}, w.counted, err)
}

// Open opens a stored file for reading; the caller closes it. A file that is
// swept meanwhile stays readable. For one that is not there the error is
// fs.ErrNotExist by errors.Is.
func (s *Store) Open(hash string) (*os.File, error) {
	if !validHash(hash) {
		return nil, ErrHash
	}
	f, err := os.Open(s.file(hash))
	if err != nil {
		return nil, fmt.Errorf("media: open file: %w", err)
	}
	return f, nil
}

// Stat returns hash with the size of its file, and fs.ErrNotExist by errors.Is
// when there is none.
func (s *Store) Stat(hash string) (File, error) {
	if !validHash(hash) {
		return File{}, ErrHash
	}
	info, err := os.Stat(s.file(hash))
	if err != nil {
		return File{}, fmt.Errorf("media: stat file: %w", err)
	}
	return File{Hash: hash, Size: info.Size()}, nil
}

// Path returns the absolute path that hash has or would have, and an empty
// string for what is not a hash. Nothing may be written to it.
func (s *Store) Path(hash string) string {
	if !validHash(hash) {
		return ""
	}
	return s.file(hash)
}

// Has reports whether the file is stored.
func (s *Store) Has(hash string) bool {
	_, err := s.Stat(hash)
	return err == nil
}

// Touch makes a stored file as young for [Store.Sweep] as one put now. For one
// that is not there the error is fs.ErrNotExist by errors.Is.
func (s *Store) Touch(hash string) error {
	if !validHash(hash) {
		return ErrHash
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if err := os.Chtimes(s.file(hash), now, now); err != nil {
		return fmt.Errorf("media: touch file: %w", err)
	}
	return nil
}

// ReadPart reads n bytes at off, fewer where the file ends before, and none at
// its very end. An off beyond the end or a negative number is an error.
func (s *Store) ReadPart(hash string, off, n int64) ([]byte, error) {
	f, err := s.Open(hash)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("media: read part: %w", err)
	}
	if off < 0 || n < 0 || off > info.Size() {
		return nil, fmt.Errorf("media: read part: %d bytes at %d of a file of %d: %w", n, off, info.Size(), fs.ErrInvalid)
	}
	b := make([]byte, min(n, info.Size()-off))
	if len(b) == 0 {
		return b, nil
	}
	if _, err := f.ReadAt(b, off); err != nil {
		return nil, fmt.Errorf("media: read part: %w", err)
	}
	return b, nil
}

// adopt makes a written temporary file the stored file f, durably. err is what
// writing it returned, counted what the budget counts for it.
func (s *Store) adopt(t *os.File, f File, counted int64, err error) (File, error) {
	if err == nil {
		err = t.Sync()
	}
	if e := t.Close(); err == nil {
		err = e
	}
	if err == nil && !s.renew(f) {
		// Another Put of the same content may be faster by now. Then this
		// rename replaces a file by an equal one, which harms nobody.
		s.mu.Lock()
		there := s.costOf(s.file(f.Hash))
		if err = os.Rename(t.Name(), s.file(f.Hash)); err == nil {
			counted += there - quota.Cost(f.Size)
		}
		s.mu.Unlock()
	}
	s.budget.Give(counted)
	// Gone already where it became the stored file. What cannot be removed now
	// is left for the next OpenStore.
	_ = os.Remove(t.Name())
	if err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	return s.settle(f)
}

// settle makes the name of f in the folder durable. It is called also when the
// file was there already: whoever put it may not have come that far yet.
func (s *Store) settle(f File) (File, error) {
	if err := atomicfile.SyncFolder(s.dir); err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	return f, nil
}

// renew reports whether f is stored already, and makes it young if so. A file
// of another size is damaged, and counts as missing so that it is replaced.
func (s *Store) renew(f File) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	info, err := os.Lstat(s.file(f.Hash))
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
		return false
	}
	now := time.Now()
	return os.Chtimes(s.file(f.Hash), now, now) == nil
}

// temp makes a temporary file with mode 0600.
func (s *Store) temp() (*os.File, error) { return s.create(s.incoming(), "*"+tempSuffix) }

func (s *Store) file(hash string) string { return filepath.Join(s.dir, hash) }

func (s *Store) incoming() string { return filepath.Join(s.dir, incomingDir) }

func (s *Store) local() string { return filepath.Join(s.dir, localDir) }

// discard closes and removes a temporary file that is not wanted.
func discard(t *os.File) {
	_ = t.Close()
	_ = os.Remove(t.Name())
}

// validHash reports whether s is a SHA-256 as this package spells it.
func validHash(s string) bool {
	if len(s) != 2*sha256.Size {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// escapeGlob makes a path mean itself in a pattern.
func escapeGlob(path string) string {
	if runtime.GOOS == "windows" {
		return path // no escapes there
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
