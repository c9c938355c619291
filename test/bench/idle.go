package main

import (
	"context"
	"fmt"
	"time"
)

// idleHold is longer than the server's ping interval of 25 s.
const idleHold = 40 * time.Second

// idle measures what a connected device costs that does nothing.
func idle(ctx context.Context, s *suite) error {
	p, err := s.serve(ctx, "idle")
	if err != nil {
		return err
	}
	defer p.drop()
	g, err := dialGateway(ctx, p.addr, nil)
	if err != nil {
		return err
	}
	defer g.end()
	one, err := open(ctx, p.addr, s.idle, 1, nil)
	if err != nil {
		return err
	}
	defer one.close()
	live0, err := p.live(ctx)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	rss0 := p.rss()

	begin, cpu0 := time.Now(), p.cpu()
	f, err := open(ctx, p.addr, 0, s.idle-1, nil)
	if err != nil {
		return err
	}
	defer f.close()
	took := time.Since(begin)
	connect := (p.cpu() - cpu0).Seconds() * 1e6 / float64(s.idle-1)

	// What connecting leaves to be done is not idling.
	const settle = 10 * time.Second
	if err := f.pause(ctx, settle); err != nil {
		return err
	}
	pings.Store(0)
	stop := s.capture(ctx, p, "idle", idleHold-settle)
	cpu0, begin = p.cpu(), time.Now()
	if err := f.pause(ctx, idleHold-settle); err != nil {
		return err
	}
	busy := (p.cpu() - cpu0).Seconds() / time.Since(begin).Seconds() * 100
	rss, pinged := p.rss(), pings.Load()
	stop()
	if pinged < int64(s.idle) {
		return fmt.Errorf("%d pings came to %d devices in %s", pinged, s.idle, idleHold-settle)
	}
	live, err := p.live(ctx)
	if err != nil {
		return err
	}
	per := func(now, before float64) float64 { return (now - before) / float64(s.idle-1) / 1024 }
	resident := per(float64(rss), float64(rss0))
	s.add("idle", fmt.Sprintf("RSS a device, %d devices, 40 s idle", s.idle), fmt.Sprintf("%.1f KiB", resident), verdict("<= 10 KiB", resident <= 10))
	s.add("idle", "the same, heap and stacks in use after a collection", fmt.Sprintf("%.1f KiB", per(live, live0)), "")
	s.add("idle", "RSS of the process with 1 device, with all", fmt.Sprintf("%.0f, %.0f MB", float64(rss0)/1e6, float64(rss)/1e6), "")
	s.add("idle", "CPU of one core, pings included", fmt.Sprintf("%.1f %%", busy), verdict("<= 2 %", busy <= 2))
	s.add("idle", "connect, hello, ready: a second, CPU each", fmt.Sprintf("%.0f, %.0f µs", float64(s.idle-1)/took.Seconds(), connect), "")
	return nil
}
