// Command generate writes the types of the TypeScript SDK, its codes and its limits from the Go package frame:
//
//	go run ./sdk/ts/generate
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

func main() {
	text, err := generate(folder("../../../frame"))
	if err == nil {
		err = os.WriteFile(folder("../src/frames.ts"), text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// folder is a place beside this file, whatever the working folder is.
func folder(path string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), path)
}
