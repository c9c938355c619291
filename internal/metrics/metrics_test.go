package metrics

import "testing"

func TestTotals(t *testing.T) {
	s := New("1.2.3")
	s.Connections.Set(3)
	s.Finals.Add(2)
	s.Accepted.WithLabelValues("text").Add(4)
	s.Accepted.WithLabelValues("media").Inc()
	totals, err := s.Totals()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"device_connections": 3, "replies_total": 2, "accepted_total": 5, "duplicates_total": 0, "build_info": 1} {
		if got, there := totals[name]; !there || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for name := range totals {
		if name[:2] == "go" {
			t.Errorf("%s is not ours", name)
		}
	}
}
