// Package measure is what the readers of the gateway part have in common: each is a client library in a process of its own
// that reads the same streams. It prints one JSON object.
package measure

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Server is where the streams are, by the name of the model.
type Server struct {
	URL, Key string
	Way      string
}

// Read reads one reply to its end, and calls on with each piece of its text.
type Read func(ctx context.Context, model string, on func(text string)) error

// Result is what a reader says. What a kind of measurement does not know is 0.
type Result struct {
	Version string  `json:"version"`
	Events  int     `json:"events"`
	P50     float64 `json:"p50_us"` // from the server's write to the caller
	P99     float64 `json:"p99_us"`
	Allocs  float64 `json:"allocs"` // an event
	Bytes   float64 `json:"bytes"`  // an event
	CPU     float64 `json:"cpu_us"` // an event
	Before  int64   `json:"before"` // RSS without streams
	RSS     int64   `json:"rss"`    // with all
	Heap    int64   `json:"heap"`   // in use for the streams after a collection, stacks included
}

// enough is how many pieces a stream that is held open must have given before it counts.
const enough = 5

// Main runs a reader. open makes its client.
func Main(open func(Server) (read Read, version string, err error)) {
	if err := run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(open func(Server) (Read, string, error)) error {
	var s Server
	flag.StringVar(&s.URL, "url", "", "address of the API, without a path")
	flag.StringVar(&s.Key, "key", "", "its key")
	flag.StringVar(&s.Way, "way", "", "runs: by runs instead of chat completions")
	do := flag.String("do", "paced", "paced, burst or held")
	streams := flag.Int("streams", 200, "how many are held open")
	flag.Parse()
	read, version, err := open(s)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r := Result{Version: version}
	if err := read(ctx, "short", func(string) {}); err != nil { // connects, and fills what is filled once
		return err
	}
	switch *do {
	case "paced":
		err = r.paced(ctx, read)
	case "burst":
		err = r.burst(ctx, read)
	case "held":
		err = r.held(ctx, read, *streams)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// paced reads pieces that hold the time at which they were sent.
func (r *Result) paced(ctx context.Context, read Read) error {
	var delays []float64
	err := read(ctx, "paced", func(text string) {
		now := time.Now().UnixNano()
		if sent, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			delays = append(delays, float64(now-sent)/1e3)
		}
	})
	if err != nil || len(delays) == 0 {
		return fmt.Errorf("%d pieces came: %w", len(delays), err)
	}
	slices.Sort(delays)
	r.Events, r.P50, r.P99 = len(delays), delays[len(delays)/2], delays[len(delays)*99/100]
	return nil
}

// burst reads as many pieces as fast as it can.
func (r *Result) burst(ctx context.Context, read Read) error {
	var before, after runtime.MemStats
	runtime.GC()
	var busy time.Duration
	err := read(ctx, "burst", func(string) {
		if r.Events++; r.Events == 1 { // what opening the stream took is not the events'
			runtime.ReadMemStats(&before)
			busy = cpu()
		}
	})
	if err != nil || r.Events < 2 {
		return fmt.Errorf("%d pieces came: %w", r.Events, err)
	}
	busy = cpu() - busy
	runtime.ReadMemStats(&after)
	n := float64(r.Events - 1)
	r.Allocs, r.Bytes, r.CPU = float64(after.Mallocs-before.Mallocs)/n, float64(after.TotalAlloc-before.TotalAlloc)/n, float64(busy.Microseconds())/n
	return nil
}

// held reads many streams at once that do not end.
func (r *Result) held(ctx context.Context, read Read, streams int) error {
	debug.FreeOSMemory()
	r.Before = rss()
	heap := inUse()
	ctx, cancel := context.WithCancel(ctx)
	var work, warm sync.WaitGroup
	warm.Add(streams)
	failed := make(chan error, streams)
	for range streams {
		work.Go(func() {
			n := 0
			err := read(ctx, "held", func(string) {
				if n++; n == enough {
					warm.Done()
				}
			})
			if n < enough {
				failed <- fmt.Errorf("a stream gave %d pieces: %w", n, err)
				warm.Done()
			}
		})
	}
	warm.Wait()
	r.Events = streams
	r.RSS = rss()
	runtime.GC()
	r.Heap = inUse() - heap
	cancel()
	work.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func rss() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10
}
