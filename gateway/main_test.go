package gateway

import (
	"testing"
	"time"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) {
	pause, pauseMost = time.Millisecond, 5*time.Millisecond
	leak.Main(m)
}
