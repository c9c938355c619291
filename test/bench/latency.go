package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	latencyTurns = 200                    // that stream at once
	draftEvery   = 250 * time.Millisecond // between two drafts of a stock gateway
	latencySteps = 20
	latencyFor   = 20 * time.Second
)

// latency measures how much later a device has what the gateway wrote. Steps come far apart, so the
// server holds none of them back for its limit of eight a second. A bare loopback socket beside it,
// whose both ends are in this process, tells how much of that is the machine and this process.
func latency(ctx context.Context, s *suite) error {
	kinds := []string{"all frames", "of them the steps of a reply", "of them the first step, a row in the store before it", "of them the final, a commit before it",
		"beside it, a bare loopback socket"}
	p50, p99 := make([][]float64, len(kinds)), make([][]float64, len(kinds))
	var rate []float64
	for range s.repeat {
		all, bare, err := latencyOnce(ctx, s)
		if err != nil {
			return err
		}
		for i, list := range [][]time.Duration{slices.Concat(all.later, all.first, all.final), all.later, all.first, all.final, bare} {
			if len(list) == 0 {
				return fmt.Errorf("%s: %w", kinds[i], errNone)
			}
			p50[i], p99[i] = append(p50[i], ms(quantile(list, 0.5))), append(p99[i], ms(quantile(list, 0.99)))
		}
		rate = append(rate, float64(len(all.later)+len(all.first)+len(all.final))/latencyFor.Seconds())
	}
	s.add("latency", fmt.Sprintf("%d turns stream at once, an op each %d ms, none held back: frames a second", latencyTurns, draftEvery.Milliseconds()), spread("%.0f", rate), "")
	for i, kind := range kinds {
		median, tail := "", ""
		if i == 0 {
			median, tail = verdict("<= 0.5", middle(p50[i]) <= 0.5), verdict("<= 5", middle(p99[i]) <= 5)
		}
		s.add("latency", kind+": op written to frame read, p50 ms", spread("%.2f", p50[i]), median)
		s.add("latency", kind+": op written to frame read, p99 ms", spread("%.2f", p99[i]), tail)
	}
	return nil
}

func latencyOnce(ctx context.Context, s *suite) (all delays, bare []time.Duration, err error) {
	p, err := s.serve(ctx, "latency")
	if err != nil {
		return all, nil, err
	}
	defer p.drop()
	x, err := openPaced(ctx, p.addr, latencyTurns, latencySteps, draftEvery, draftEvery)
	if err != nil {
		return all, nil, err
	}
	defer x.close()
	if err := x.begin(ctx); err != nil {
		return all, nil, err
	}
	stop := s.capture(ctx, p, "latency", latencyFor)
	probe, err := startProbe()
	if err != nil {
		return all, nil, err
	}
	all, err = x.watch(ctx, latencyFor)
	bare = probe.end()
	stop()
	if err != nil {
		return all, nil, err
	}
	return all, bare, x.finish(ctx)
}

// probe is a loopback socket on which times are sent.
type probe struct {
	out, in net.Conn
	stop    chan struct{}
	work    sync.WaitGroup
	delays  []time.Duration
}

func startProbe() (*probe, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	b := &probe{stop: make(chan struct{})}
	if b.out, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, err
	}
	if b.in, err = l.Accept(); err != nil {
		b.out.Close()
		return nil, err
	}
	b.work.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		defer b.out.Close()
		for {
			select {
			case <-b.stop:
				return
			case <-tick.C:
			}
			if binary.Write(b.out, binary.LittleEndian, time.Now().UnixNano()) != nil {
				return
			}
		}
	})
	b.work.Go(func() {
		defer b.in.Close()
		var at [8]byte
		for {
			if _, err := io.ReadFull(b.in, at[:]); err != nil {
				return
			}
			b.delays = append(b.delays, time.Duration(time.Now().UnixNano()-int64(binary.LittleEndian.Uint64(at[:]))))
		}
	})
	return b, nil
}

func (b *probe) end() []time.Duration {
	close(b.stop)
	b.work.Wait()
	return b.delays
}
