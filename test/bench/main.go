// Bench measures a built hermes-mobile as a process of its own: memory and CPU an idle device, CPU a streamed frame,
// durable accepts a second, fan-out, a storm of reconnects, the time to start, and the web page in a browser. This process is the load: devices and a
// scripted Hermes gateway on loopback. It counts every receipt and every reply, and fails when one is missing; it never
// fails because of a time. In idle, stream and fanout the yardsticks take part in turn, minimal servers that get the same
// frames. The part gateway measures package gateway and the direct agent, beside other clients.
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
	n       int    // connections of the large ones
	streams int    // devices that are streamed to at eight steps a second
	repeat  int
	table   []row
	full    *full // what start and storm share
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
	{"idle", 45 * time.Minute, idle},
	{"stream", 45 * time.Minute, streams},
	{"accepts", 5 * time.Minute, accepts},
	{"fanout", 45 * time.Minute, fanout},
	{"start", 5 * time.Minute, start},
	{"storm", 5 * time.Minute, storm},
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
	flag.IntVar(&s.n, "n", 15000, "connections in idle and fanout, devices in start and storm")
	flag.IntVar(&s.streams, "streams", 1000, "devices that are streamed to at nearly eight steps a second each")
	flag.IntVar(&s.repeat, "repeat", 3, "how often idle, stream, accepts, fanout, start, page and gateway are measured")
	dir := flag.String("dir", "", "folder for data, on the disk that is to be measured (default: a temporary one)")
	flag.Parse()
	for _, name := range flag.Args() {
		if !known(name) {
			return fmt.Errorf("there is no bench %q: idle, stream, accepts, fanout, start, storm, page, gateway", name)
		}
	}
	if s.repeat < 1 || s.n < 100 || s.streams < 1 {
		return errors.New("-repeat and -streams are 1 at least, -n 100")
	}
	var err error
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp(*dir, "hermes-mobile-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
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

func known(name string) bool {
	for _, b := range benches {
		if b.name == name {
			return true
		}
	}
	return false
}

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
	fmt.Fprintln(t, "bench\tfigure\tmeasured\texpected")
	for _, r := range s.table {
		fmt.Fprintln(t, strings.Join([]string{r.bench, r.what, r.value, r.target}, "\t"))
	}
	_ = t.Flush()
}
