package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The committed types are those of the package frame.
func TestFramesAreCurrent(t *testing.T) {
	want, err := generate(folder("../../../frame"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(folder("../src/frames.ts"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("sdk/ts/src/frames.ts is not what the package frame says; write it anew with: go run ./sdk/ts/generate")
	}
}

// A frame that was added to the package and forgotten here is told.
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
