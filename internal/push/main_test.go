package push

import (
	"testing"

	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
