// Command generate writes what the TypeScript SDK has from Go: the types, codes and limits of the package frame, and the classes of
// characters of testdata/visible:
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

// write makes one file from what it comes from.
func write(file string, generate func(string) ([]byte, error), from string) error {
	text, err := generate(folder(from))
	if err != nil {
		return err
	}
	return os.WriteFile(folder(file), text, 0o644)
}

// folder is a place beside this file, whatever the working folder is.
func folder(path string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), path)
}
