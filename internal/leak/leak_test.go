package leak

import (
	"testing"
	"time"
)

func TestMain(m *testing.M) { Main(m) }

// A goroutine that ends by itself is no leak, even if goleak alone would not wait long enough.
func TestNoneWaits(t *testing.T) {
	timer := time.NewTimer(time.Second)
	go func() { <-timer.C }()
	None(t)
	if timer.Stop() {
		t.Error("it did not wait")
	}
}
