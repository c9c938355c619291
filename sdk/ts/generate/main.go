// Command generate writes the files that the TypeScript SDK derives from Go: the types, codes and
// limits of the package frame, and the character classes of testdata/visible:
//
//	go run ./sdk/ts/generate
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	if err := errors.Join(write("../src/frames.ts", generate, "../../../frame"), write("../src/visible-table.ts", generateTable, "../../../testdata/visible/table.json")); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write generates one file from its source.
func write(file string, generate func(string) ([]byte, error), from string) error {
	text, err := generate(folder(from))
	if err != nil {
		return err
	}
	return os.WriteFile(folder(file), text, 0o644)
}

// folder returns a path relative to this file, whatever the working directory is.
func folder(path string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), path)
}
