package gateway

import (
	"testing"
	"time"

	"hermes-mobile/internal/backoff"
	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) {
	retry = backoff.Policy{Base: time.Millisecond, Max: 5 * time.Millisecond}
	leak.Main(m)
}
