package hub

import (
	"testing"
	"time"
)

// Steps that come a little early after one that was late pass, and still there are eight a second
// and no more.
func TestPaceOfSteps(t *testing.T) {
	begin := time.Now()
	for name, every := range map[string]func(i int) time.Duration{
		"many":    func(int) time.Duration { return time.Millisecond },
		"just so": func(i int) time.Duration { return editInterval + []time.Duration{20, -20}[i%2]*time.Millisecond },
	} {
		var p pace
		now, shown, held := begin, 0, 0
		for i := 0; now.Sub(begin) < 10*time.Second; i++ {
			if p.wait(now) > 0 {
				held++
			} else {
				p.step(now)
				shown++
			}
			now = now.Add(every(i))
		}
		if shown < 79 || shown > 81 || name == "just so" && held > 1 {
			t.Errorf("%s: %d were shown in ten seconds, %d were held back", name, shown, held)
		}
	}
	var p pace
	for range 100 { // before tools and cards
		p.step(begin)
	}
	if wait := p.wait(begin); wait > editInterval {
		t.Errorf("the next step waits %v", wait)
	}
}
