//go:build unix

package seam

import (
	"path/filepath"
	"testing"
	"time"
)

// A step moves what the clock on the wall says, and no duration that is measured.
func TestStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seam")
	outside, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	inside, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	before := controls
	defer func() { controls = before }()
	controls = inside
	for _, step := range []time.Duration{9 * time.Hour, -30 * time.Hour, 24 * time.Hour} {
		began, wall := Now(), time.Now().Round(0).Add(inside.Offset())
		outside.Step(step)
		now := Now()
		if d := now.Sub(began); d < 0 || d > time.Minute {
			t.Errorf("after a step of %s the measured time is %s", step, d)
		}
		if d := now.Round(0).Sub(wall) - step; d < 0 || d > time.Minute {
			t.Errorf("a step of %s moved the wall by %s", step, d+step)
		}
		if d := Since(time.Unix(wall.Unix(), 0)) - step; d < -time.Minute || d > time.Minute {
			t.Errorf("since a time on the wall: %s after a step of %s", d+step, step)
		}
	}
}
