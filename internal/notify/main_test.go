package notify

import (
	"testing"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
