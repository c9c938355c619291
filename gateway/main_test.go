package gateway

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	pause, pauseMost = time.Millisecond, 5*time.Millisecond
	goleak.VerifyTestMain(m)
}
