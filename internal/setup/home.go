package setup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"hermes-mobile/internal/asowner"
)

// Home is a Hermes home: the main one, or one of its profiles.
type Home struct {
	Path    string `json:"path"`
	Profile string `json:"profile,omitempty"` // empty: the main one
	// Active reports whether hermes without -p uses this home.
	Active bool `json:"-"`
}

// The name of the main home for hermes -p.
const mainProfile = "default"

// Name returns the name for hermes -p.
func (h Home) Name() string { return cmp.Or(h.Profile, mainProfile) }

// profileName matches the names that Hermes accepts for profiles, and so for their folders.
var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// Homes returns the Hermes home at a path and, if that is a main one, its profiles. The first is
// the one at the path.
func Homes(path string) (list []Home, err error) {
	if path == "" {
		return nil, fmt.Errorf("no home directory found: set HERMES_HOME")
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	err = asowner.Do(path, func() (err error) {
		list, err = homes(path)
		return err
	})
	return list, err
}

func homes(path string) ([]Home, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	if err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no Hermes home at %s", path)
	}
	if dir := filepath.Dir(path); filepath.Base(dir) == "profiles" && profileName.MatchString(filepath.Base(path)) {
		return []Home{{Path: path, Profile: filepath.Base(path), Active: true}}, nil
	}
	list := []Home{{Path: path}}
	entries, _ := os.ReadDir(filepath.Join(path, "profiles")) // most homes have no profiles
	for _, e := range entries {
		dir := filepath.Join(path, "profiles", e.Name())
		if info, err := os.Stat(dir); err == nil && info.IsDir() && profileName.MatchString(e.Name()) {
			list = append(list, Home{Path: dir, Profile: e.Name()})
		}
	}
	active := 0
	if text, _, err := asowner.ReadFile(filepath.Join(path, "active_profile"), maxRecord); err == nil {
		name := strings.ToLower(strings.TrimSpace(string(text)))
		active = max(0, slices.IndexFunc(list, func(h Home) bool { return h.Name() == name }))
	}
	list[active].Active = true
	return list, nil
}

// Pick returns the home of a profile.
func Pick(list []Home, profile string) (Home, error) {
	profile = strings.ToLower(strings.TrimSpace(profile))
	var names []string
	for _, h := range list {
		if h.Name() == profile {
			return h, nil
		}
		names = append(names, h.Name())
	}
	return Home{}, fmt.Errorf("there is no profile %q: use one of %s", profile, strings.Join(names, ", "))
}
