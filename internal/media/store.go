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

// File identifies a stored file.
type File struct {
	// Hash is the SHA-256 of the content, 64 lower-case hex digits.
	Hash string
	// Size is in bytes.
	Size int64
}

// ErrHash is returned for a hash that isn't 64 lower-case hex digits. Nothing else ever becomes
// part of a path.
var ErrHash = errors.New("media: not a SHA-256 in hex")

const (
	incomingDir = "incoming" // temporary files, same file system as the stored ones
	localDir    = "local"    // copies under real names, see LocalCopy
	tempSuffix  = ".part"
)

// Store stores files by the hash of their content in one folder:
//
//	<hash>              a stored file, never changed once it is there
//	incoming/*.part     files being written, and spooled uploads
//	local/<hash>/<name> copies with a real name
//
// A stored file appears by a rename after its bytes were synced, and Put returns after the folder
// was synced too. So a crash at any moment leaves either no file under the hash or the whole one,
// and a file that Put reported survives it. A Store is safe for concurrent use. Only one process at
// a time may use the folder.
type Store struct {
	dir string
	// mu makes "check that a file exists and renew it" one step towards the sweep's "check that it
	// is old and remove it". It is never held while content is read or written.
	mu sync.Mutex
	// unfinished is how many bytes all assemblers have in memory.
	unfinished atomic.Int64
	// budget counts the bytes in the folder; nil: no bound.
	budget *quota.Budget
	// create creates a temporary file; a test simulates a full disk here.
	create func(dir, pattern string) (*os.File, error)
	// group makes local copies readable for the group of this process, for an agent with another
	// account.
	group bool
}

// OpenStore opens the store in dir. It creates a missing folder with mode 0700 and removes
// temporary files of an earlier process.
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
			if err := os.Chmod(d, 0o710); err != nil { // pass through it, but don't list it
				return nil, fmt.Errorf("media: open store: %w", err)
			}
		}
	}
	// Remove only names that we generate, in case dir is the wrong folder.
	left, err := filepath.Glob(filepath.Join(escapeGlob(s.incoming()), "*"+tempSuffix))
	if err != nil {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	for _, p := range left {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("media: remove temporary file: %w", err)
		}
	}
	// The folder itself must survive a crash too. We may not be able to read a parent that somebody
	// else created.
	if err := atomicfile.SyncFolder(filepath.Dir(abs)); err != nil && !errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	if err := atomicfile.SyncFolder(abs); err != nil {
		return nil, fmt.Errorf("media: open store: %w", err)
	}
	return s, nil
}

// opened reports whether the owner has opened the folder above the store to its group, and so wants
// it shared.
func opened(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.Mode().Perm()&0o077 == 0o010
}

// Put durably stores b. Content that is already stored is one file, whose age for [Store.Sweep]
// starts over. If there is no room for b, the error wraps a [*quota.Full].
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

// PutReader stores the content of r as Put does. For more than max bytes it returns a [*Refusal]
// with TooBig; a max of 0 or less is no limit. An error of r is returned wrapped. If there is no
// room for the file, PutReader fails as soon as the room is used up, not at the end of r.
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

// Open opens a stored file for reading. The caller must close it. A file that is swept meanwhile
// stays readable. For a missing file the error is fs.ErrNotExist.
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

// Stat returns hash with the size of its file. For a missing file the error is fs.ErrNotExist.
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

// Path returns the absolute path of hash, empty for an invalid hash. Nothing may be written to it.
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

// Touch renews the age of a stored file for [Store.Sweep]. For a missing file the error is
// fs.ErrNotExist.
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

// ReadPart reads n bytes at off, fewer if the file ends before, none at its end. An off beyond the
// end or a negative number is an error.
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

// adopt turns a temporary file into the stored file f, durably. err is the result of writing it,
// counted what the budget counts for it.
func (s *Store) adopt(t *os.File, f File, counted int64, err error) (File, error) {
	if err == nil {
		err = t.Sync()
	}
	if e := t.Close(); err == nil {
		err = e
	}
	if err == nil && !s.renew(f) {
		// A concurrent Put of the same content may have been faster. Then this rename replaces a
		// file with an equal one.
		s.mu.Lock()
		there := s.costOf(s.file(f.Hash))
		if err = os.Rename(t.Name(), s.file(f.Hash)); err == nil {
			counted += there - quota.Cost(f.Size)
		}
		s.mu.Unlock()
	}
	s.budget.Give(counted)
	// It is already gone if it became the stored file. If it can't be removed now, the next
	// OpenStore does.
	_ = os.Remove(t.Name())
	if err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	return s.settle(f)
}

// settle makes the name of f in the folder durable, also if the file existed: its writer may not
// have synced the folder yet.
func (s *Store) settle(f File) (File, error) {
	if err := atomicfile.SyncFolder(s.dir); err != nil {
		return File{}, fmt.Errorf("media: store file: %w", err)
	}
	return f, nil
}

// renew reports whether f is already stored, and renews its age if so. A file of another size is
// corrupt. It counts as missing, so it is replaced.
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

// temp creates a temporary file with mode 0600.
func (s *Store) temp() (*os.File, error) { return s.create(s.incoming(), "*"+tempSuffix) }

func (s *Store) file(hash string) string { return filepath.Join(s.dir, hash) }

func (s *Store) incoming() string { return filepath.Join(s.dir, incomingDir) }

func (s *Store) local() string { return filepath.Join(s.dir, localDir) }

// discard closes and removes a temporary file.
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

// escapeGlob escapes a path for use in a pattern.
func escapeGlob(path string) string {
	if runtime.GOOS == "windows" {
		return path // patterns have no escapes there
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
