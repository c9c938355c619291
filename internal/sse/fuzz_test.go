package sse

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// FuzzReader checks that the events do not depend on how the bytes arrive, and contain only bytes
// that were sent.
func FuzzReader(f *testing.F) {
	files, err := filepath.Glob("../../gateway/testdata/api/*/*.sse")
	must(f, err)
	if len(files) < 100 {
		f.Fatalf("only %d recorded streams to start from", len(files))
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		must(f, err)
		f.Add(data)
	}
	f.Add([]byte("\uFEFFdata: a\r\rid: 1\x00\r\ndata\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := read(NewReader(bytes.NewReader(data), maxEvent))
		if !errors.Is(err, io.EOF) {
			t.Fatalf("the reader failed: %v", err)
		}
		pieces, err := read(NewReader(iotest.OneByteReader(bytes.NewReader(data)), maxEvent))
		if !errors.Is(err, io.EOF) || pieces != whole {
			t.Fatalf("by bytes: %s, %v\nwhole: %s", pieces, err, whole)
		}
		if utf8.Valid(data) {
			r := NewReader(bytes.NewReader(data), maxEvent)
			for {
				ev, err := r.Next()
				if err != nil {
					break
				}
				if !utf8.Valid(ev.Data) {
					t.Fatal("the reader broke a character")
				}
			}
		}
	})
}
