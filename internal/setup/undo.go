package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// stateFile in the data folder says what was written where, so that it can be undone. It holds no secret.
const stateFile = "setup.json"

// step is one run that wrote something.
type step struct {
	Kind  string    `json:"kind,omitempty"` // empty, stepChannel or stepAPI
	Home  string    `json:"home"`
	Time  time.Time `json:"time"`
	Files []record  `json:"files"`
	Made  []string  `json:"made,omitempty"` // folders
}

// record is what became of one file.
type record struct {
	Path    string      `json:"path"`
	Existed bool        `json:"existed"`
	Backup  string      `json:"backup,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Before  string      `json:"before"` // sums of the content
	After   string      `json:"after"`
	Changes []Change    `json:"changes,omitempty"`
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func recall(data string) (list []step, err error) {
	text, err := os.ReadFile(filepath.Join(data, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("what was written cannot be known: %w", err)
	}
	return list, nil
}

func save(data string, list []step) error {
	path := filepath.Join(data, stateFile)
	if len(list) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	return replace(path, before, append(text, '\n'), err == nil, 0o600)
}

func remember(data string, s step) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	list, err := recall(data)
	if err != nil {
		return err
	}
	return save(data, append(list, s))
}

// Undone says what became of one file.
type Undone struct {
	Path string `json:"path"`
	What string `json:"what"` // "restored", "removed", "as before", "our keys taken out", or "left"
	// Left are the keys of ours that are in it still, because they were changed since or cannot be taken out alone.
	Left []string `json:"left,omitempty"`
	// Backup is the file as it was, where it was not put back.
	Backup string `json:"backup,omitempty"`
}

// What Undone says.
const (
	undoneRestored = "restored"
	undoneRemoved  = "removed"
	undoneBefore   = "as before"
	undonePart     = "our keys taken out"
	undoneLeft     = "left"
)

// Undo takes back all that was written into a home, the last first. A file that nobody changed since is put back byte for
// byte; out of another only our keys are taken.
func Undo(data, home string) (list []Undone, err error) { return undo(data, home, "") }

// undo takes back the runs of one kind, or with an empty one all.
func undo(data, home, kind string) (list []Undone, err error) {
	steps, err := recall(data)
	if err != nil {
		return nil, err
	}
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.Home != home || kind != "" && s.Kind != kind {
			continue
		}
		for _, r := range slices.Backward(s.Files) {
			u, err := r.undo()
			if err != nil {
				return list, err
			}
			list = merge(list, u)
		}
		for _, dir := range slices.Backward(s.Made) {
			_ = os.RemoveAll(filepath.Join(dir, "__pycache__")) // Python's, of the plug-in
			_ = os.Remove(dir)                                  // unless something is in it
		}
		steps = slices.Delete(steps, i, i+1)
		if err := save(data, steps); err != nil {
			return list, err
		}
	}
	return list, nil
}

// merge keeps one entry for each file: of several runs the first decides what it is now, as it was undone last.
func merge(list []Undone, u Undone) []Undone {
	for i, o := range list {
		if o.Path != u.Path {
			continue
		}
		u.Left = append(o.Left, u.Left...)
		if u.What == undoneBefore && o.What != undoneBefore {
			u.What = o.What
		}
		list[i] = u
		return list
	}
	return append(list, u)
}

func (r record) undo() (Undone, error) {
	u := Undone{Path: r.Path, What: undoneBefore}
	now, err := os.ReadFile(r.Path)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return u, err
	}
	if exists == r.Existed && (!exists || sum(now) == r.Before) {
		return u, r.forget()
	}
	if !exists {
		u.What, u.Backup = undoneLeft, r.Backup // somebody removed it
		return u, nil
	}
	if sum(now) == r.After {
		if !r.Existed {
			u.What = undoneRemoved
			return u, os.Remove(r.Path)
		}
		if old, err := os.ReadFile(r.Backup); err == nil && sum(old) == r.Before {
			u.What = undoneRestored
			if err := replace(r.Path, now, old, true, r.Mode); err != nil {
				return u, err
			}
			return u, r.forget()
		}
	}
	return r.part(u, now)
}

// forget removes the backup of a file that is as it was.
func (r record) forget() error {
	if r.Backup == "" {
		return nil
	}
	if err := os.Remove(r.Backup); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// part takes our keys out of a file that others changed since.
func (r record) part(u Undone, now []byte) (Undone, error) {
	u.What, u.Backup = undonePart, r.Backup
	text := now
	switch filepath.Base(r.Path) {
	case envFile:
		old, _ := os.ReadFile(r.Backup) // without it what was there before is lost
		for _, c := range r.Changes {
			text = revertEnv(text, old, c, &u)
		}
	case configFile:
		for _, c := range slices.Backward(r.Changes) {
			next, ok := revert(text, c)
			if !ok {
				u.Left = append(u.Left, c.Key)
				continue
			}
			text = next
		}
	default:
		u.What = undoneLeft
		return u, nil
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return u, err
	}
	return u, replace(r.Path, now, text, true, info.Mode().Perm())
}

// revertEnv takes one variable back.
func revertEnv(text, old []byte, c Change, u *Undone) []byte {
	value, there := getenv(text, c.Key)
	was, had := getenv(old, c.Key)
	switch {
	case c.New == "" && there, c.New != "" && there && sum([]byte(value)) != c.New:
		u.Left = append(u.Left, c.Key)
	case had:
		if next, _, err := setenv(text, c.Key, was); err == nil {
			return next
		}
		u.Left = append(u.Left, c.Key)
	default:
		return unsetenv(text, c.Key)
	}
	return text
}
