package e2e

import (
	"bufio"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Metrics reads the server's counters; the values of one name are added up.
func (s *Server) Metrics(t testing.TB) map[string]float64 {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	resp, err := client.Get(s.Base() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	m := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, number, found := strings.Cut(lines.Text(), " ")
		if !found || name == "#" {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		v, _ := strconv.ParseFloat(number, 64) // not a number counts as nothing
		m[name] += v
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

// Memory is what the server's heap and stacks take, in bytes.
func (s *Server) Memory(t testing.TB) float64 {
	t.Helper()
	m := s.Metrics(t)
	return m["go_memstats_heap_inuse_bytes"] + m["go_memstats_stack_inuse_bytes"]
}
