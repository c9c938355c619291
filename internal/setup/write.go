package setup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/atomicfile"
)

// ErrConflict means that the plan would replace the settings of another connector, and Replace is
// not set.
var ErrConflict = errors.New("this Hermes uses another connector")

// Write makes a backup of each file, records in the data folder how to undo the changes, and writes
// the files. It returns the paths of the backups.
func (p *Plan) Write(data string, now time.Time) (backups []string, err error) {
	switch {
	case len(p.ByHand) > 0:
		return nil, p.ByHand[0]
	case len(p.Conflicts) > 0 && !p.Replace:
		return nil, ErrConflict
	case p.step != stepChannel && p.Secret == "":
		return nil, errors.New("no secret to write")
	}
	s := step{Kind: p.step, Home: p.Home.Path, Time: now.UTC().Truncate(time.Second)}
	for _, f := range p.Files {
		if !f.changed() {
			continue
		}
		r := record{Path: f.Path, Existed: f.Exists, Before: sum(f.Before), After: sum(f.After), Changes: sealed(f)}
		if f.Exists {
			_, info, err := asowner.ReadFile(f.Path, maxFile)
			if err != nil {
				return backups, err
			}
			r.Mode = info.Mode().Perm()
			if r.Backup, err = backup(f, now); err != nil {
				return backups, fmt.Errorf("nothing was written: create a backup: %w", err)
			}
			backups = append(backups, r.Backup)
		}
		s.Files = append(s.Files, r)
	}
	shares := p.Apart != nil && p.Apart.missing.shared
	if len(s.Files) == 0 && !shares {
		return nil, nil
	}
	if shares {
		if s.Share, err = p.Apart.before(); err != nil {
			return backups, err
		}
	}
	if s.Made, err = makeDirs(p.Files); err != nil {
		return backups, err
	}
	// The record comes before the files, so that an interrupted run can be undone, too.
	if err := p.remember(data, s); err != nil {
		return backups, fmt.Errorf("nothing was written: record the changes for --undo: %w", err)
	}
	for _, f := range p.Files {
		if !f.changed() {
			continue
		}
		if err := replace(f.Path, f.Before, f.After, f.Exists, f.Mode); err != nil {
			return backups, err
		}
	}
	if shares {
		return backups, p.Apart.share()
	}
	return backups, nil
}

// sealed returns the changes of a file without secret values. A SHA-256 is enough to recognize them
// later.
func sealed(f *File) []Change {
	list := make([]Change, len(f.Changes))
	for i, c := range f.Changes {
		if list[i] = c; filepath.Base(f.Path) == envFile {
			list[i] = Change{Key: c.Key, New: sum([]byte(c.New))}
			if c.New == "" {
				list[i].New = "" // the variable was removed
			}
		}
	}
	return list
}

// makeDirs creates the missing folders of new files, and returns them.
func makeDirs(files []*File) (made []string, err error) {
	for _, f := range files {
		if f.Exists || !f.changed() {
			continue
		}
		var missing []string
		for dir := filepath.Dir(f.Path); ; dir = filepath.Dir(dir) {
			err := asowner.Do(dir, func() error {
				_, err := os.Stat(dir)
				return err
			})
			if !errors.Is(err, fs.ErrNotExist) {
				break
			}
			missing = append([]string{dir}, missing...)
		}
		for _, dir := range missing {
			if err := asowner.Do(dir, func() error { return os.Mkdir(dir, 0o755) }); err != nil {
				return made, err
			}
			made = append(made, dir)
		}
	}
	return made, nil
}

// backup copies a file to the same folder. Only the owner can read the copy.
func backup(f *File, now time.Time) (name string, err error) {
	err = asowner.Do(f.Path, func() (err error) {
		name, err = copyBeside(f, now)
		return err
	})
	return name, err
}

// backupInfix separates the name of a file from the time in the name of its backup.
const backupInfix = ".hermes-mobile-"

func copyBeside(f *File, now time.Time) (string, error) {
	path := f.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	base := path + backupInfix + now.UTC().Format("20060102T150405Z")
	for i := 0; ; i++ {
		name := base
		if i > 0 {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		b, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, f.Mode&0o700)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = b.Write(f.Before)
		err = errors.Join(err, b.Sync(), b.Close())
		copyOwner(name, path)
		return name, err
	}
}

var errMeanwhile = errors.New("another program changed the file meanwhile: run this again")

// replace replaces a file atomically, so readers see either the old or the new content. It follows
// a link instead of replacing it. It fails if the file has changed since the plan was made.
func replace(path string, before, after []byte, existed bool, mode fs.FileMode) error {
	return asowner.Do(path, func() error { return rename(path, before, after, existed, mode) })
}

func rename(path string, before, after []byte, existed bool, mode fs.FileMode) error {
	return atomicfile.Replace(path, after, atomicfile.Options{Mode: mode, FollowLink: true,
		Prepare: func(draft *atomicfile.Draft) error {
			if existed {
				copyOwner(draft.Name(), draft.Path)
			}
			return nil
		},
		Check: func(path string) error {
			now, err := os.ReadFile(path)
			if existed && (err != nil || !bytes.Equal(now, before)) || !existed && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: %w", path, errMeanwhile)
			}
			return nil
		}})
}
