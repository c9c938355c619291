package gateway

import (
	"testing"
	"time"
)

// waitFor waits until a condition holds.
func waitFor(t testing.TB, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain")
		}
	}
}
