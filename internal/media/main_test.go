package media

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var t0 = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := OpenStore(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pattern returns n bytes that differ at neighbouring places.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i % 251)
	}
	return b
}

func mustPut(t testing.TB, s *Store, b []byte) File {
	t.Helper()
	f, err := s.Put(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wantContent(t testing.TB, s *Store, f File, want []byte) {
	t.Helper()
	got, err := os.ReadFile(s.Path(f.Hash))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || f.Size != int64(len(want)) {
		t.Fatalf("%d bytes stored and size %d, want %d bytes", len(got), f.Size, len(want))
	}
}

// code returns the protocol's code of an error, empty for none.
func code(err error) string {
	var r *Refusal
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &r):
		return "internal"
	case r.TooBig:
		return "too_big"
	}
	return "bad_frame"
}

// temps returns the names of the temporary files.
func temps(t testing.TB, s *Store) []string {
	t.Helper()
	entries, err := os.ReadDir(s.incoming())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
