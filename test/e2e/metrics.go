package e2e

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Admin is a client of the admin socket, whatever host its requests name.
func (s *Server) Admin() *http.Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(s.Data, "admin.sock"))
	}
	return &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: patience}
}

// Metrics reads the server's counters over the admin socket; the values of one name are added up.
func (s *Server) Metrics(t testing.TB) map[string]float64 {
	t.Helper()
	resp, err := s.Admin().Get("http://admin/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics answers %s", resp.Status)
	}
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
