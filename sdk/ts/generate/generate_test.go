package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The committed files match the package frame and its vectors.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	for file, made := range map[string]struct {
		generate func(string) ([]byte, error)
		from     string
	}{
		"../src/frames.ts":        {generate, "../../../frame"},
		"../src/visible-table.ts": {generateTable, "../../../testdata/visible/table.json"},
	} {
		want, err := made.generate(folder(made.from))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(folder(file))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s does not match %s; regenerate it with: go run ./sdk/ts/generate", file, made.from)
		}
	}
}

// A frame type that is missing from the registry is an error.
func TestForgottenFrame(t *testing.T) {
	source, err := read(folder("../../../frame"))
	if err != nil {
		t.Fatal(err)
	}
	source.up = append(source.up, "Brandnew")
	if err := source.check(); err == nil || !strings.Contains(err.Error(), "Brandnew") {
		t.Errorf("got %v, want an error that names Brandnew", err)
	}
}

// A class that this command does not know is an error, and so is a character with two classes.
func TestForgottenClass(t *testing.T) {
	for table, want := range map[string]string{
		`{"classes":{"brandnew":[[1,2]]}}`:                     "brandnew",
		`{"classes":{"hidden":[[1,5]],"blank":[[9,9],[5,7]]}}`: "U+0005",
	} {
		path := filepath.Join(t.TempDir(), "table.json")
		if err := os.WriteFile(path, []byte(table), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := generateTable(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %s", table, err, want)
		}
	}
}
