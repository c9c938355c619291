package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// smallDevices are those of a household.
const smallDevices = 5

// small weighs the program on the disk, and as a process that serves few devices and has nothing stored.
func small(ctx context.Context, s *suite) error {
	program, err := os.Stat(s.bin)
	if err != nil {
		return err
	}
	size := float64(program.Size()) / (1 << 20)
	s.add("small", "the program on the disk", fmt.Sprintf("%.1f MiB", size), verdict("<= 32 MiB", size <= 32 && s.profile == ""))

	p, err := s.serve(ctx, "small")
	if err != nil {
		return err
	}
	defer p.drop()
	g, err := dialGateway(ctx, p.addr, nil)
	if err != nil {
		return err
	}
	defer g.end()
	f, err := open(ctx, p.addr, 0, smallDevices, nil)
	if err != nil {
		return err
	}
	defer f.close()
	rest := time.Duration(s.minutes * float64(time.Minute))
	fmt.Printf("  resting for %s\n", rest)
	if err := f.pause(ctx, time.Second); err != nil {
		return err
	}
	first, cpu := p.rss(), p.cpu()
	if err := f.pause(ctx, rest-time.Second); err != nil {
		return err
	}
	last, used := p.rss(), p.cpu()-cpu
	mib := func(n int64) float64 { return float64(n) / (1 << 20) }
	s.add("small", fmt.Sprintf("RSS, %d devices and a gateway, empty store, after %s", smallDevices, rest), fmt.Sprintf("%.1f MiB", mib(last)), verdict("<= 40 MiB", mib(last) <= 40))
	s.add("small", "the same after a second", fmt.Sprintf("%.1f MiB", mib(first)), "")
	s.add("small", "CPU of one core meanwhile", fmt.Sprintf("%.2f %%", used.Seconds()/(rest-time.Second).Seconds()*100), "")
	return nil
}
