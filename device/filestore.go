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

// fileStore is the Store of NewFileStore.
type fileStore struct {
	dir string

	mu    sync.Mutex
	next  int
	names map[string]string // id to file name
}

// NewFileStore returns a durable [Store] in a folder, which it creates where necessary (mode 0700).
// The folder holds cursor.json, token, and in outgoing/ one file for each outgoing message. Only
// its owner can read the files. The store replaces each file as a whole. Messages and the token are
// on the disk (fsync) when a call returns; a power cut may cost the newest cursors. Only one
// process at a time may use a folder.
func NewFileStore(dir string) (Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "outgoing"), 0o700); err != nil {
		return nil, fmt.Errorf("device: open store: %w", err)
	}
	return &fileStore{dir: dir, names: map[string]string{}}, nil
}

type entryFile struct {
	ID    string          `json:"id"`
	Frame json.RawMessage `json:"frame"`
}

// Load fails for a file that it cannot read, and leaves the file alone: it may hold a message.
func (f *fileStore) Load() (Saved, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tidy()
	var s Saved
	data, err := os.ReadFile(filepath.Join(f.dir, "cursor.json"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return s, fmt.Errorf("read cursor: %w", err)
	default:
		// A power cut can truncate the cursor. Without one, events come again.
		if json.Unmarshal(data, &s.Cursor) != nil {
			s.Cursor = frame.Cursor{}
		}
	}
	token, err := os.ReadFile(filepath.Join(f.dir, "token"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("read token: %w", err)
	}
	s.Token = strings.TrimSpace(string(token))

	files, err := os.ReadDir(filepath.Join(f.dir, "outgoing"))
	if err != nil {
		return s, fmt.Errorf("read outgoing messages: %w", err)
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
			return s, fmt.Errorf("read outgoing message: %w", err)
		}
		var e entryFile
		if err := json.Unmarshal(data, &e); err != nil {
			return s, fmt.Errorf("read outgoing message %s: %w", name, err)
		}
		f.names[e.ID] = name
		f.next = n + 1
		s.Queue = append(s.Queue, Entry{ID: e.ID, Frame: e.Frame})
	}
	return s, nil
}

func (f *fileStore) SetCursor(c frame.Cursor) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replace(filepath.Join(f.dir, "cursor.json"), data, false)
}

func (f *fileStore) SetToken(token string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.replace(filepath.Join(f.dir, "token"), []byte(token+"\n"), true)
}

func (f *fileStore) Add(e Entry) error {
	data, err := json.Marshal(entryFile{ID: e.ID, Frame: e.Frame})
	if err != nil {
		return fmt.Errorf("store message: %w", err)
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

func (f *fileStore) Remove(id string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	name, ok := f.names[id]
	if !ok {
		return nil
	}
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove message: %w", err)
	}
	delete(f.names, id)
	return nil
}

// halfWritten begins the names of files that are not complete yet.
const halfWritten = ".new-"

// tidy removes files that an earlier process was writing when it was killed.
func (f *fileStore) tidy() {
	for _, dir := range []string{f.dir, filepath.Join(f.dir, "outgoing")} {
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			if strings.HasPrefix(file.Name(), halfWritten) {
				_ = os.Remove(filepath.Join(dir, file.Name())) // the next start tries again
			}
		}
	}
}

// replace writes a file so that it is always either the old or the new one.
func (f *fileStore) replace(name string, data []byte, sync bool) error {
	err := func() error {
		tmp, err := os.CreateTemp(filepath.Dir(name), halfWritten+"*") // mode 0600
		if err != nil {
			return err
		}
		defer func() { _ = os.Remove(tmp.Name()) }() // it is gone after the rename
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
		// The name is durable only once its folder is. Not every system can sync a folder.
		if dir, err := os.Open(filepath.Dir(name)); err == nil {
			_ = dir.Sync()
			dir.Close()
		}
		return nil
	}()
	if err != nil {
		return fmt.Errorf("write store: %w", err)
	}
	return nil
}
