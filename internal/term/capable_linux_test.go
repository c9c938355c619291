package term

import (
	"os"
	"testing"
)

// The full screen needs a terminal that can move its cursor.
func TestCapable(t *testing.T) {
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, want := range map[string]bool{"xterm-256color": true, "dumb": false, "": false} {
		t.Setenv("TERM", name)
		if got := Capable(pty); got != want {
			t.Errorf("TERM=%q: %v", name, got)
		}
		if Capable(file) {
			t.Errorf("TERM=%q: a file counts as a terminal", name)
		}
	}
	if err := os.Unsetenv("TERM"); err != nil {
		t.Fatal(err)
	}
	if Capable(pty) {
		t.Error("a terminal without TERM counts as capable")
	}
}
