package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// contestant is what a part measures: ours, or one of the yardsticks, minimal servers that speak the same protocol and do no
// more than pass frames on.
type contestant struct {
	name   string
	argv   []string // an address is added; none: ours
	golang bool     // can be asked what is in use after a collection
	python bool     // with the event loop of Python, as the gateway of Hermes runs
	uvloop bool     // with a faster one
	speech *dialect // of its devices
}

func (v *contestant) ours() bool { return len(v.argv) == 0 }

// of names a figure of the server. Ours have no name before them.
func (v *contestant) of(figure string) string {
	if v.ours() {
		return figure
	}
	return v.name + ": " + figure
}

// contestants are ours and the yardsticks that scripts/bench.sh has built; others are left out, and it said why. Profiles are
// made of ours alone.
func (s *suite) contestants() []*contestant {
	list := []*contestant{{name: "hermes-mobile", golang: true}}
	add := func(v *contestant, program string, more ...string) {
		if argv := strings.Fields(os.Getenv(program)); len(argv) > 0 && s.profile == "" {
			v.argv = append(argv, more...)
			list = append(list, v)
		}
	}
	add(&contestant{name: "gorilla/websocket", golang: true}, "BENCH_YARDSTICK_GO", "-library", "gorilla", "-addr")
	add(&contestant{name: "coder/websocket", golang: true}, "BENCH_YARDSTICK_GO", "-library", "coder", "-addr")
	add(&contestant{name: "centrifuge", golang: true, speech: centrifugal}, "BENCH_YARDSTICK_GO", "-library", "centrifuge", "-addr")
	add(&contestant{name: "Node ws"}, "BENCH_YARDSTICK_NODE")
	add(&contestant{name: "Python aiohttp", python: true}, "BENCH_YARDSTICK_PYTHON")
	add(&contestant{name: "Python aiohttp with uvloop", uvloop: true}, "BENCH_YARDSTICK_UVLOOP", "--uvloop")
	return list
}

// begin starts a server for one measurement.
func (s *suite) begin(ctx context.Context, v *contestant, name string) (*process, error) {
	if v.ours() {
		return s.serve(ctx, name)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp(s.dir, name+"-")
	if err != nil {
		return nil, err
	}
	p := &process{addr: addr, data: data, log: data + ".log", done: make(chan struct{})}
	p.cmd = exec.Command(v.argv[0], append(v.argv[1:len(v.argv):len(v.argv)], addr)...)
	p.cmd.Env = []string{"HOME=" + s.dir, "TMPDIR=" + s.dir, "PATH=" + os.Getenv("PATH")}
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("%s: %w", v.name, err)
	}
	return p, p.await(ctx)
}

// inUse is what heap and stacks take after a collection. Only Go tells.
func (v *contestant) inUse(ctx context.Context, p *process) (float64, error) {
	switch {
	case v.ours():
		return p.live(ctx)
	case !v.golang:
		return 0, nil
	}
	body, err := get(ctx, "http://"+p.addr+"/live", "")
	if err != nil {
		return 0, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(string(text), 64)
}

// measured are the figures of one kind, by server, of all runs.
type measured map[*contestant][]float64

func (m measured) add(v *contestant, value float64) { m[v] = append(m[v], value) }

// bare is the Go yardstick with the smallest figure, or nil.
func (m measured) bare() *contestant {
	return m.least(func(v *contestant) bool { return v.golang && !v.ours() })
}

// python is the yardstick in Python, or nil.
func (m measured) python() *contestant { return m.least(func(v *contestant) bool { return v.python }) }

// uvloop is the same with the faster event loop, or nil.
func (m measured) uvloop() *contestant { return m.least(func(v *contestant) bool { return v.uvloop }) }

func (m measured) least(which func(*contestant) bool) (best *contestant) {
	for v := range m {
		if which(v) && (best == nil || middle(m[v]) < middle(m[best])) {
			best = v
		}
	}
	return best
}

// compare adds the row of what ours takes for each of what v takes, from the middle of all runs. Without a limit it has no goal.
func (s *suite) compare(bench, figure string, m measured, v *contestant, limit float64) {
	if v == nil || middle(m[v]) <= 0 {
		return
	}
	name := v.name
	if v.golang {
		name += ", the best bare Go server"
	}
	for ours := range m {
		if ours.ours() {
			ratio := middle(m[ours]) / middle(m[v])
			goal := ""
			if limit > 0 {
				goal = verdict(fmt.Sprintf("<= %g", limit), ratio <= limit)
			}
			s.add(bench, figure+": ours over "+name, fmt.Sprintf("%.2f", ratio), goal)
		}
	}
}
