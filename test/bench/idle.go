package main

import (
	"context"
	"fmt"
	"time"
)

const (
	// idleHold is longer than the servers' ping interval of 25 s.
	idleHold = 55 * time.Second
	// idleSettle is for what connecting leaves to be done, which is not idling.
	idleSettle = 25 * time.Second
)

// idled is what one run gave.
type idled struct {
	perDevice, inUse float64 // KiB
	one, all         float64 // MB of the process, with one device and with all
	busy             float64 // % of a core
	rate, connect    float64 // a second, µs
}

// idle measures what a connected device costs that does nothing, in our server and in the yardsticks.
func idle(ctx context.Context, s *suite) error {
	contestants := s.contestants()
	rss, inUse, one, all, busy, rate, connect := measured{}, measured{}, measured{}, measured{}, measured{}, measured{}, measured{}
	for range s.repeat {
		for _, v := range contestants {
			r, err := idleOnce(ctx, s, v)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			rss.add(v, r.perDevice)
			if v.golang {
				inUse.add(v, r.inUse)
			}
			one.add(v, r.one)
			all.add(v, r.all)
			busy.add(v, r.busy)
			rate.add(v, r.rate)
			connect.add(v, r.connect)
		}
	}
	for _, v := range contestants {
		goal := func(limit float64, unit string, values []float64) string {
			if !v.ours() {
				return ""
			}
			return verdict(fmt.Sprintf("<= %g %s", limit, unit), middle(values) <= limit)
		}
		s.add("idle", v.of(fmt.Sprintf("RSS a device, %d devices, %.0f s idle", s.n, idleHold.Seconds())), spread("%.1f", rss[v])+" KiB", goal(10, "KiB", rss[v]))
		if v.golang {
			s.add("idle", v.of("the same, heap and stacks in use after a collection"), spread("%.1f", inUse[v])+" KiB", goal(7.5, "KiB", inUse[v]))
		}
		s.add("idle", v.of("RSS of the process with 1 device, with all"), fmt.Sprintf("%.0f, %.0f MB", middle(one[v]), middle(all[v])), "")
		s.add("idle", v.of("CPU of one core, pings included"), spread("%.1f", busy[v])+" %", goal(2, "%", busy[v]))
		s.add("idle", v.of("connect, hello, ready: a second, CPU each"), fmt.Sprintf("%.0f, %.0f µs", middle(rate[v]), middle(connect[v])), "")
	}
	s.compare("idle", "RSS a device", rss, rss.bare(), 1.15)
	s.compare("idle", "in use a device", inUse, inUse.bare(), 1.15)
	s.compare("idle", "RSS a device", rss, rss.python(), 0.6)
	s.compare("idle", "RSS a device", rss, rss.uvloop(), 0)
	return nil
}

func idleOnce(ctx context.Context, s *suite, v *contestant) (r idled, err error) {
	p, err := s.begin(ctx, v, "idle")
	if err != nil {
		return r, err
	}
	defer p.drop()
	g, err := dialGateway(ctx, p.addr, nil)
	if err != nil {
		return r, err
	}
	defer g.end()
	one, err := openAs(ctx, v.speech, p.addr, s.n, 1, nil)
	if err != nil {
		return r, err
	}
	defer one.close()
	if err := one.pause(ctx, 2*time.Second); err != nil {
		return r, err
	}
	rss0 := float64(p.rss()) // before a collection is asked for, which in our server takes garbage
	live0, err := v.inUse(ctx, p)
	if err != nil {
		return r, err
	}

	begin, cpu0 := time.Now(), p.cpu()
	f, err := openAs(ctx, v.speech, p.addr, 0, s.n-1, nil)
	if err != nil {
		return r, err
	}
	defer f.close()
	others := float64(s.n - 1)
	r.rate = others / time.Since(begin).Seconds()
	r.connect = (p.cpu() - cpu0).Seconds() * 1e6 / others

	if err := f.pause(ctx, idleSettle); err != nil {
		return r, err
	}
	pings.Store(0)
	stop := s.capture(ctx, p, "idle", idleHold-idleSettle)
	cpu0, begin = p.cpu(), time.Now()
	if err := f.pause(ctx, idleHold-idleSettle); err != nil {
		return r, err
	}
	r.busy = (p.cpu() - cpu0).Seconds() / time.Since(begin).Seconds() * 100
	rss, pinged := float64(p.rss()), pings.Load()
	stop()
	if pinged < int64(s.n) {
		return r, fmt.Errorf("%d pings came to %d devices in %s", pinged, s.n, idleHold-idleSettle)
	}
	live, err := v.inUse(ctx, p)
	if err != nil {
		return r, err
	}
	r.perDevice, r.inUse = (rss-rss0)/others/1024, (live-live0)/others/1024
	r.one, r.all = rss0/1e6, rss/1e6
	return r, nil
}
