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
	"strings"
	"time"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/dotenv"
)

// stateFile is the file in the data folder that records the changes of setup, so that they can be
// undone. It contains no secret.
const stateFile = "setup.json"

// step is one run of setup that wrote files.
type step struct {
	Kind  string    `json:"kind,omitempty"` // empty, stepChannel or stepAPI
	Home  string    `json:"home"`
	Time  time.Time `json:"time"`
	Files []record  `json:"files"`
	Made  []string  `json:"made,omitempty"` // the folders that it created
	Share *share    `json:"share,omitempty"`
}

// record describes the changes to one file.
type record struct {
	Path    string      `json:"path"`
	Existed bool        `json:"existed"`
	Backup  string      `json:"backup,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Before  string      `json:"before"` // SHA-256 of the content before
	After   string      `json:"after"`  // and after
	Changes []Change    `json:"changes,omitempty"`
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// ownNotes is the folder of root's record when setup wrote to folders of several users. Whoever can
// change the record decides which files an undo removes and restores, and with whose rights.
var ownNotes = "/etc/hermes-mobile"

// notesFor returns the folder for the record of a run. It is the data folder, unless that folder
// and one of the files belong to different users.
func notesFor(data string, paths []string) (string, error) {
	keeper, other, err := asowner.Of(data)
	if err != nil || os.Geteuid() != 0 {
		return data, err
	}
	for _, path := range paths {
		u, theirs, err := asowner.Of(path)
		if err != nil {
			return "", err
		}
		if theirs != other || u.UID != keeper.UID {
			return ownNotes, nil
		}
	}
	return data, nil
}

// recall reads the record in a folder.
func recall(folder string) (list []step, err error) {
	text, _, err := asowner.ReadFile(filepath.Join(folder, stateFile), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of changes: %w", err)
	}
	return list, nil
}

// save writes the record in a folder, or removes it if it is empty.
func save(folder string, list []step) error {
	path := filepath.Join(folder, stateFile)
	if len(list) == 0 {
		err := asowner.Do(path, func() error { return os.Remove(path) })
		if folder == ownNotes {
			_ = os.Remove(folder) // fails if it has other files
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	before, _, err := asowner.ReadFile(path, maxFile)
	return replace(path, before, append(text, '\n'), err == nil, 0o600)
}

// remember adds a run to the record.
func (p *Plan) remember(data string, s step) error {
	if err := asowner.Do(data, func() error { return os.MkdirAll(data, 0o700) }); err != nil {
		return err
	}
	paths := []string{s.Home}
	for _, r := range s.Files {
		paths = append(paths, r.Path)
	}
	folder, err := notesFor(data, paths)
	if err != nil {
		return err
	}
	if err := asowner.Do(folder, func() error { return os.MkdirAll(folder, 0o755) }); err != nil {
		return err
	}
	list, err := recall(folder)
	if err != nil {
		return err
	}
	return save(folder, append(list, s))
}

// Undone is the result of an undo for one file.
type Undone struct {
	Path string `json:"path"`
	What string `json:"what"` // "restored", "removed", "as before", "our keys removed", "no longer shared", or "left"
	// Left lists our keys that are still in the file: somebody changed them, or they can't be
	// removed alone.
	Left []string `json:"left,omitempty"`
	// Backup is the path of the file's original, if it wasn't restored.
	Backup string `json:"backup,omitempty"`
}

// Values of Undone.What.
const (
	undoneRestored = "restored"
	undoneRemoved  = "removed"
	undoneBefore   = "as before"
	undonePart     = "our keys removed"
	undoneLeft     = "left"
	undoneAlone    = "no longer shared"
)

// Undo undoes all changes to a home, the newest first. It restores a file byte for byte if nobody
// changed it since. From a changed file it removes only our keys.
func Undo(data, home string) (list []Undone, err error) { return undo(data, home, "") }

// undo undoes the runs of one kind. An empty kind means all runs.
func undo(data, home, kind string) (list []Undone, err error) {
	// If another user can change the record, setup acts on it only with that user's rights.
	err = asowner.Do(data, func() (err error) {
		list, err = undoFrom(data, home, kind, list)
		return err
	})
	if err != nil || os.Geteuid() != 0 || data == ownNotes {
		return list, err
	}
	if u, other, err := asowner.Of(ownNotes); err != nil || other {
		return list, errors.Join(err, fmt.Errorf("%s belongs to %s, so setup did not undo what it records", ownNotes, u.Name))
	}
	return undoFrom(ownNotes, home, kind, list)
}

func undoFrom(folder, home, kind string, list []Undone) ([]Undone, error) {
	steps, err := recall(folder)
	if err != nil {
		return list, err
	}
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.Home != home || kind != "" && s.Kind != kind {
			continue
		}
		for _, r := range slices.Backward(s.Files) {
			var u Undone
			err := asowner.Do(r.Path, func() (err error) {
				u, err = r.undo()
				return err
			})
			if err != nil {
				return list, err
			}
			list = merge(list, u)
		}
		if s.Share != nil {
			if err := s.Share.undo(); err != nil {
				return list, err
			}
			list = merge(list, Undone{Path: s.Share.Path, What: undoneAlone})
		}
		for _, dir := range slices.Backward(s.Made) {
			_ = asowner.Do(dir, func() error {
				_ = os.RemoveAll(filepath.Join(dir, "__pycache__")) // Python's cache of the plug-in
				return os.Remove(dir)                               // fails if it has other files
			})
		}
		steps = slices.Delete(steps, i, i+1)
		if err := save(folder, steps); err != nil {
			return list, err
		}
	}
	return list, nil
}

// merge keeps one entry per file. If several runs changed a file, the first run decides its state,
// because it is undone last.
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

// undo restores or removes one file, or removes our keys from it.
func (r record) undo() (Undone, error) {
	u := Undone{Path: r.Path, What: undoneBefore}
	now, _, err := asowner.ReadFile(r.Path, maxFile)
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
		if old, _, err := asowner.ReadFile(r.Backup, maxFile); err == nil && sum(old) == r.Before {
			u.What = undoneRestored
			if err := replace(r.Path, now, old, true, r.Mode); err != nil {
				return u, err
			}
			return u, r.forget()
		}
	}
	return r.part(u, now)
}

// forget removes the backup of a file that is restored.
func (r record) forget() error {
	if r.Backup == "" {
		return nil
	}
	if err := os.Remove(r.Backup); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// part removes our keys from a file that others changed since.
func (r record) part(u Undone, now []byte) (Undone, error) {
	u.What, u.Backup = undonePart, r.Backup
	text := now
	old, _, _ := asowner.ReadFile(r.Backup, maxFile) // without the backup, the old values are lost
	switch filepath.Base(r.Path) {
	case envFile:
		for _, c := range r.Changes {
			text = revertEnv(text, old, c, &u)
		}
		text = r.forgetChannels(text, old)
	case configFile:
		for _, c := range slices.Backward(r.Changes) {
			next, ok := revert(text, c)
			if !ok {
				u.Left = append(u.Left, c.Key)
				continue
			}
			text = next
		}
		text = r.forgetPlatform(text, old)
	default:
		u.What = undoneLeft
		return u, nil
	}
	info, err := os.Stat(r.Path)
	if err != nil {
		return u, err
	}
	if err := replace(r.Path, now, text, true, info.Mode().Perm()); err != nil || len(u.Left) > 0 {
		return u, err
	}
	u.Backup = "" // nothing of ours is in the file
	return u, r.forget()
}

// forgetChannels removes variables that Hermes wrote for us: the home channels of our devices,
// which /sethome sets.
func (r record) forgetChannels(text, old []byte) []byte {
	if !slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Key == envID || c.Key == envPlatforms }) {
		return text
	}
	for _, e := range dotenv.Parse(string(text)) {
		if _, had := getenv(old, e.Key); !had && (strings.HasPrefix(e.Key, envRelayHome) || strings.HasPrefix(e.Key, envPluginHome)) {
			text = unsetenv(text, e.Key)
		}
	}
	return text
}

// forgetPlatform removes the settings of our platform if Hermes wrote them for us.
func (r record) forgetPlatform(text, old []byte) []byte {
	if !slices.ContainsFunc(r.Changes, func(c Change) bool { return strings.HasPrefix(c.Key, "plugins.enabled") }) {
		return text
	}
	before, err := parse(old)
	if err != nil {
		return text
	}
	path := []string{"platforms", pluginPlatform}
	if _, had := lookup(before.value, path); had {
		return text
	}
	d, err := parse(text)
	if err != nil {
		return text
	}
	v, _ := lookup(d.value, path)
	for _, key := range keysOf(v) {
		if key != "home_channel" && key != "enabled" {
			return text // somebody added own settings
		}
	}
	if _, had := lookup(before.value, path[:1]); !had && len(keysOf(mustLookup(d.value, path[:1]))) == 1 {
		path = path[:1] // "platforms" is new, and holds nothing else
	}
	if out, ok := d.dropKey(path); ok {
		return out
	}
	return text
}

func mustLookup(v any, path []string) any {
	out, _ := lookup(v, path)
	return out
}

// revertEnv undoes the change of one variable.
func revertEnv(text, old []byte, c Change, u *Undone) []byte {
	value, there := getenv(text, c.Key)
	_, had := getenv(old, c.Key)
	switch {
	case c.New == "" && there, c.New != "" && there && sum([]byte(value)) != c.New:
		u.Left = append(u.Left, c.Key)
	case had:
		lines := slices.DeleteFunc(dotenv.Lines(string(old), c.Key), func(e dotenv.Entry) bool { return e.Bare })
		last := lines[len(lines)-1] // the text of the line, because its value may contain ${NAME}
		if next, err := putenv(text, c.Key, string(old)[last.From:last.To]); err == nil {
			return next
		}
		u.Left = append(u.Left, c.Key)
	default:
		return unsetenv(text, c.Key)
	}
	return text
}
