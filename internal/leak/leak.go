// Package leak finds goroutines that tests leave behind.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// timeout is how long goroutines may take to end by themselves, such as those of timers and of
// closing connections. goleak allows less than half a second, which is too short on a busy machine.
const timeout = 20 * time.Second

// Main implements a whole TestMain: it runs the tests, and fails if they leave goroutines behind.
func Main(m *testing.M) { os.Exit(Status(m.Run())) }

// Status returns the exit code of the test program. It turns a 0 into a 1 if goroutines are left,
// and prints them.
func Status(code int) int {
	if code != 0 {
		return code
	}
	if err := find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// None fails a test that has left goroutines behind.
func None(t testing.TB, options ...goleak.Option) {
	t.Helper()
	if err := find(options...); err != nil {
		t.Error(err)
	}
}

func find(options ...goleak.Option) error {
	for end := time.Now().Add(timeout); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
