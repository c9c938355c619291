package main

import (
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// machine prints what the figures depend on.
func machine(w io.Writer, s *suite) {
	model := "unknown"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	built := "?"
	if info, err := buildinfo.ReadFile(s.bin); err == nil {
		built = info.GoVersion
	}
	fmt.Fprintf(w, "machine  %d cores, %s, Linux %s\n", runtime.NumCPU(), model, firstLine("/proc/sys/kernel/osrelease"))
	fmt.Fprintf(w, "server   %s, %s\n", s.bin, built)
	fmt.Fprintf(w, "load     1, 5 and 15 minutes before: %s (the load and the server share the cores)\n", load())
	if rate, worst, err := syncRate(s.dir); err == nil {
		fmt.Fprintf(w, "disk     %.0f writes of 256 B with fsync a second, slowest %.1f ms, in %s\n", rate, ms(worst), s.dir)
	}
	fmt.Fprintln(w)
}

func firstLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return "?"
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return line
}

func load() string {
	f := strings.Fields(firstLine("/proc/loadavg"))
	return strings.Join(f[:min(3, len(f))], " ")
}

// syncRate is how many single writes the disk makes durable in a second: the base of everything
// that is durable.
func syncRate(dir string) (perSecond float64, worst time.Duration, err error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	defer f.Close()
	line := make([]byte, 256)
	begin, n := time.Now(), 0
	for time.Since(begin) < 500*time.Millisecond {
		t := time.Now()
		if _, err := f.Write(line); err != nil {
			return 0, 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
		worst = max(worst, time.Since(t))
		n++
	}
	return float64(n) / time.Since(begin).Seconds(), worst, nil
}
