package server

import "testing"

func TestCrowdSettles(t *testing.T) {
	var c crowd
	for i, look := range []struct {
		n    int
		tidy bool
	}{
		{0, false}, {5, false}, {5, false}, {5, false}, {5, false}, // a few cost nothing
		{8000, false}, {15000, false}, {15020, false}, {15020, false}, {15020, true}, {15020, false}, {15100, false}, {15100, false}, // once, when they are all there
		{14000, false}, {14000, false}, {14000, false}, {14000, false}, // an eighth is not gone
		{2000, false}, {10, false}, {10, false}, {10, false}, {10, true}, {10, false},
		{400, false}, {400, false}, {10, false}, {400, false}, {400, false}, {400, false}, {400, true}, // they come and go
	} {
		if got := c.settled(look.n); got != look.tidy {
			t.Errorf("look %d, with %d connections: %v", i, look.n, got)
		}
	}
}
