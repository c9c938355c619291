package leak

import (
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// What ends by itself, though later than goleak alone would wait, is no leak.
func TestNoneWaits(t *testing.T) {
	timer := time.NewTimer(time.Second)
	go func() { <-timer.C }()
	None(t)
	if timer.Stop() {
		t.Error("it did not wait")
	}
}
