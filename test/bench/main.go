// Bench measures a built hermes-mobile as a process of its own: its size, memory and CPU an idle
// device, CPU a streamed frame, the latency and the bytes of a streamed reply, durable accepts a
// second, fan-out, what a device costs that does not read, uploads, a storm of reconnects, the time
// to start, and the web page in a browser. This process is the load: devices and a scripted Hermes
// gateway on loopback. It counts every receipt and every reply, and fails when one is missing; it
// never fails because of a time. In idle, stream and fanout the yardsticks take part in turn,
// minimal servers that get the same frames. The part gateway measures package gateway and the
// direct agent, beside other clients.
//
//	bench -bin bin/hermes-mobile [NAME …]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

// suite is one run of the program.
type suite struct {
	bin     string
	dir     string // everything that is written goes below it
	profile string // folder for profiles; empty: none, the product has no such thing
	n       int    // connections of idle and fanout
	storm   int    // devices of storm
	frames  int    // stored frames of start
	minutes float64
	streams int // devices that are streamed to at eight steps a second
	repeat  int
	table   []row
}

type row struct{ bench, what, value, target string }

func (s *suite) add(bench, what, value, target string) {
	s.table = append(s.table, row{bench, what, value, target})
	fmt.Printf("  %-48s %s\n", what, value)
}

// benches in the order they run. Each has a time after which it is given up.
var benches = []struct {
	name string
	max  time.Duration
	run  func(context.Context, *suite) error
}{
	{"small", 2 * time.Hour, small},
	{"idle", 45 * time.Minute, idle},
	{"stream", 45 * time.Minute, streams},
	{"latency", 10 * time.Minute, latency},
	{"bytes", 5 * time.Minute, wireBytes},
	{"accepts", 5 * time.Minute, accepts},
	{"fanout", 45 * time.Minute, fanout},
	{"slow", 10 * time.Minute, slow},
	{"upload", 10 * time.Minute, uploads},
	{"start", 10 * time.Minute, start},
	{"storm", 10 * time.Minute, storm},
	{"page", 10 * time.Minute, page},
	{"gateway", 10 * time.Minute, clients},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	s := &suite{}
	flag.StringVar(&s.bin, "bin", "bin/hermes-mobile", "the server")
	flag.StringVar(&s.profile, "profile", "", "folder for profiles of the server; -bin must be test/bench/profiled then")
	flag.IntVar(&s.n, "n", 15000, "connections in idle and fanout")
	flag.IntVar(&s.storm, "storm", 5000, "devices in storm")
	flag.IntVar(&s.frames, "frames", 1_000_000, "stored frames in start")
	flag.Float64Var(&s.minutes, "minutes", 10, "how long the server of small rests before it is weighed")
	flag.IntVar(&s.streams, "streams", 1000, "devices that are streamed to at nearly eight steps a second each")
	flag.IntVar(&s.repeat, "repeat", 3, "how often most of them are measured")
	dir := flag.String("dir", "", "folder for data, on the disk that is to be measured (default: a temporary one)")
	flag.Parse()
	for _, name := range flag.Args() {
		if !known(name) {
			return fmt.Errorf("there is no bench %q: %s", name, strings.Join(names(), ", "))
		}
	}
	if s.repeat < 1 || s.streams < 1 || s.minutes <= 0 || min(s.n, s.storm) < 100 || s.frames < leastFrames {
		return fmt.Errorf("-repeat and -streams are 1 at least, -n and -storm 100, -frames %d, -minutes more than 0", leastFrames)
	}
	var err error
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(*dir, "hermes-mobile-bench-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(s.dir) }()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	machine(os.Stdout, s)
	var failed []error
	for _, b := range benches {
		if !wanted(b.name) || ctx.Err() != nil {
			continue
		}
		fmt.Printf("%s\n", b.name)
		limited, cancel := context.WithTimeout(ctx, b.max)
		if err := b.run(limited, s); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", b.name, err))
			fmt.Println("  failed:", err)
		}
		cancel()
	}
	s.print(os.Stdout)
	return errors.Join(failed...)
}

func names() []string {
	var list []string
	for _, b := range benches {
		list = append(list, b.name)
	}
	return list
}

func known(name string) bool { return slices.Contains(names(), name) }

func wanted(name string) bool {
	if flag.NArg() == 0 {
		return true
	}
	for _, a := range flag.Args() {
		if a == name {
			return true
		}
	}
	return false
}

func (s *suite) print(w io.Writer) {
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "part\tfigure\tmeasured\tgoal")
	for _, r := range s.table {
		fmt.Fprintln(t, strings.Join([]string{r.bench, r.what, r.value, r.target}, "\t"))
	}
	_ = t.Flush()
}
