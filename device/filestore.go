package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"hermes-mobile/frame"
)

// FileStore keeps a device's state in a folder: cursor.json, token, and one file per outgoing message in outgoing/. Every
// file is replaced as a whole, readable by the owner only, and messages and the token are on the disk (fsync) when the
// call returns; the cursor may lose its last moments in a power cut. One process at a time.
type FileStore struct {
	dir string

	mu    sync.Mutex
	next  int
	names map[string]string // id to file name
}

// NewFileStore opens the folder, and makes it where it is not there (mode 0700).
func NewFileStore(dir string) (*FileStore, error) {
	if err := os.MkdirAll(filepath.Join(dir, "outgoing"), 0o700); err != nil {
		return nil, fmt.Errorf("device: open store: %w", err)
	}
	return &FileStore{dir: dir, names: map[string]string{}}, nil
}

type entryFile struct {
	ID    string          `json:"id"`
	Frame json.RawMessage `json:"frame"`
}

// Load implements Store. A file that cannot be read is an error and is left alone: it may hold a message.
func (f *FileStore) Load() (Saved, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tidy()
	var s Saved
	data, err := os.ReadFile(filepath.Join(f.dir, "cursor.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, fmt.Errorf("device: read cursor: %w", err)
	default:
		// A cursor cut short by a power cut is as good as none: events come again.
		if json.Unmarshal(data, &s.Cursor) != nil {
			s.Cursor = frame.Cursor{}
		}
	}
	token, err := os.ReadFile(filepath.Join(f.dir, "token"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("device: read token: %w", err)
	}
	s.Token = strings.TrimSpace(string(token))

	files, err := os.ReadDir(filepath.Join(f.dir, "outgoing"))
	if err != nil {
		return s, fmt.Errorf("device: read outgoing messages: %w", err)
	}
	var numbers []int
	for _, file := range files {
		if n, err := strconv.Atoi(strings.TrimSuffix(file.Name(), ".json")); err == nil {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		name := filepath.Join(f.dir, "outgoing", strconv.Itoa(n)+".json")
		data, err := os.ReadFile(name)
		if err != nil {
			return s, fmt.Errorf("device: read outgoing message: %w", err)
		}
		var e entryFile
		if err := json.Unmarshal(data, &e); err != nil {
			return s, fmt.Errorf("device: read outgoing message %s: %w", name, err)
		}
		f.names[e.ID] = name
		f.next = n + 1
		s.Queue = append(s.Queue, Entry{ID: e.ID, Frame: e.Frame})
	}
	return s, nil
}

// SetCursor implements Store.
func (f *FileStore) SetCursor(c frame.Cursor) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replace(filepath.Join(f.dir, "cursor.json"), data, false)
}

// SetToken implements Store.
func (f *FileStore) SetToken(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replace(filepath.Join(f.dir, "token"), []byte(token+"\n"), true)
}

// Add implements Store.
func (f *FileStore) Add(e Entry) error {
	data, err := json.Marshal(entryFile{ID: e.ID, Frame: e.Frame})
	if err != nil {
		return fmt.Errorf("device: keep message: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	name := filepath.Join(f.dir, "outgoing", strconv.Itoa(f.next)+".json")
	if err := f.replace(name, data, true); err != nil {
		return err
	}
	f.next++
	f.names[e.ID] = name
	return nil
}

// Remove implements Store.
func (f *FileStore) Remove(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, ok := f.names[id]
	if !ok {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("device: forget message: %w", err)
	}
	delete(f.names, id)
	return nil
}

// halfWritten begins the names of files that are not whole yet.
const halfWritten = ".new-"

// tidy removes what an earlier process was writing when it was killed.
func (f *FileStore) tidy() {
	for _, dir := range []string{f.dir, filepath.Join(f.dir, "outgoing")} {
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if strings.HasPrefix(file.Name(), halfWritten) {
				os.Remove(filepath.Join(dir, file.Name()))
			}
		}
	}
}

// replace writes a file so that it is either the old or the new one, whatever happens.
func (f *FileStore) replace(name string, data []byte, sync bool) error {
	err := func() error {
		tmp, err := os.CreateTemp(filepath.Dir(name), halfWritten+"*") // mode 0600
		if err != nil {
			return err
		}
		defer os.Remove(tmp.Name())
		_, err = tmp.Write(data)
		if err == nil && sync {
			err = tmp.Sync()
		}
		if err := errors.Join(err, tmp.Close()); err != nil {
			return err
		}
		if err := os.Rename(tmp.Name(), name); err != nil || !sync {
			return err
		}
		// The name is durable only when its folder is. Not every system can sync one.
		if dir, err := os.Open(filepath.Dir(name)); err == nil {
			dir.Sync()
			dir.Close()
		}
		return nil
	}()
	if err != nil {
		return fmt.Errorf("device: write store: %w", err)
	}
	return nil
}
