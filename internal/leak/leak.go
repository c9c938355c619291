// Package leak finds goroutines that tests leave behind.
package leak

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// patience is how long goroutines have that end by themselves, such as timers and connections that close. goleak alone gives them less
// than half a second, which a busy machine may need.
const patience = 20 * time.Second

// Main is a whole TestMain: it runs the tests, and fails where they leave goroutines behind.
func Main(m *testing.M) { os.Exit(Status(m.Run())) }

// Status is what the test program is to end with: code, or 1 where that is 0 and goroutines are left, which it says.
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
	for end := time.Now().Add(patience); ; {
		if err := goleak.Find(options...); err == nil || time.Now().After(end) {
			return err
		}
	}
}
