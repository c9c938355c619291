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

// stateFile in the data folder records what setup wrote where, for the undo. It contains no secret.
const stateFile = "setup.json"

// step is one run that wrote something.
type step struct {
	Kind  string    `json:"kind,omitempty"` // empty, stepChannel or stepAPI
	Home  string    `json:"home"`
	Time  time.Time `json:"time"`
	Files []record  `json:"files"`
	Made  []string  `json:"made,omitempty"` // folders
	Share *share    `json:"share,omitempty"`
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

// ownNotes is where root keeps its notes when it has written into folders of several users: whoever may change them decides
// what an undo removes and restores, and with whose rights.
var ownNotes = "/etc/hermes-mobile"

// notesFor returns the folder for the notes of a run: the data folder, unless it belongs to another user than one of the files.
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

func save(folder string, list []step) error {
	path := filepath.Join(folder, stateFile)
	if len(list) == 0 {
		err := asowner.Do(path, func() error { return os.Remove(path) })
		if folder == ownNotes {
			_ = os.Remove(folder) // unless something is in it
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

// remember notes a run of the plan.
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

// Undone says what became of one file.
type Undone struct {
	Path string `json:"path"`
	What string `json:"what"` // "restored", "removed", "as before", "our keys removed", "no longer shared", or "left"
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
	undonePart     = "our keys removed"
	undoneLeft     = "left"
	undoneAlone    = "no longer shared"
)

// Undo takes back all that was written into a home, the last first. A file that nobody changed since is put back byte for
// byte; out of another only our keys are taken.
func Undo(data, home string) (list []Undone, err error) { return undo(data, home, "") }

// undo takes back the runs of one kind, or with an empty one all.
func undo(data, home, kind string) (list []Undone, err error) {
	// Notes that another user can change are followed with that user's rights only.
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
				_ = os.RemoveAll(filepath.Join(dir, "__pycache__")) // Python's, of the plug-in
				return os.Remove(dir)                               // unless something is in it
			})
		}
		steps = slices.Delete(steps, i, i+1)
		if err := save(folder, steps); err != nil {
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
	old, _, _ := asowner.ReadFile(r.Backup, maxFile) // without it what was there before is lost
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

// forgetChannels takes out what Hermes has written for us: the home channels that /sethome chose among our devices.
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

// forgetPlatform takes the settings of our platform out, where Hermes has written them for us.
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
			return text // somebody's own
		}
	}
	if _, had := lookup(before.value, path[:1]); !had && len(keysOf(mustLookup(d.value, path[:1]))) == 1 {
		path = path[:1] // it holds nothing else, and was not there
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

// revertEnv takes one variable back.
func revertEnv(text, old []byte, c Change, u *Undone) []byte {
	value, there := getenv(text, c.Key)
	_, had := getenv(old, c.Key)
	switch {
	case c.New == "" && there, c.New != "" && there && sum([]byte(value)) != c.New:
		u.Left = append(u.Left, c.Key)
	case had:
		lines := slices.DeleteFunc(dotenv.Lines(string(old), c.Key), func(e dotenv.Entry) bool { return e.Bare })
		last := lines[len(lines)-1] // as it was written, since ${NAME} may be in it
		if next, err := putenv(text, c.Key, string(old)[last.From:last.To]); err == nil {
			return next
		}
		u.Left = append(u.Left, c.Key)
	default:
		return unsetenv(text, c.Key)
	}
	return text
}
