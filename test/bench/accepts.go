package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
)

const (
	acceptDevices = 64
	acceptWindow  = 32 // in flight each, where the throttle is open
	acceptFor     = 6 * time.Second
	acceptGoal    = 10000 // a second
)

// acceptMode is how messages are accepted: with which MOBILE_SYNC, and how many each device has in flight.
type acceptMode struct {
	sync   string
	flying int
}

// accepts measures how many messages a second are accepted, and how long a receipt takes. Those depend on each other: with the
// throttle open the messages wait for one another. So the receipts are timed with the fewest in flight that give the rate
// of the goal, too. No gateway is connected, so that nothing else happens.
func accepts(ctx context.Context, s *suite) error {
	few, err := fewest(ctx, s)
	if err != nil {
		return err
	}
	// In turn, so that all see the same disk.
	modes := []acceptMode{{"always", few}, {"always", acceptWindow}, {"interval", acceptWindow}}
	if few == acceptWindow {
		modes = modes[1:]
	}
	results := make([][]accepted, len(modes))
	for range s.repeat {
		for i, mode := range modes {
			r, err := acceptOnce(ctx, s, mode, acceptFor)
			if err != nil {
				return err
			}
			results[i] = append(results[i], r)
		}
	}
	for i, mode := range modes {
		var rates, p50, p99, cpus []float64
		for _, r := range results[i] {
			rates, p50, p99, cpus = append(rates, r.rate), append(p50, r.p50), append(p99, r.p99), append(cpus, r.cpu)
		}
		of := func(figure string) string {
			return fmt.Sprintf("sync %s, %d devices, %d in flight each: %s", mode.sync, acceptDevices, mode.flying, figure)
		}
		fast, soon := "", ""
		if i == 0 {
			soon = verdict("<= 25", middle(p99) <= 25)
		}
		if mode.sync == "always" {
			fast = verdict(">= 10000", middle(rates) >= acceptGoal)
		}
		s.add("accepts", of("accepts a second"), spread("%.0f", rates), fast)
		s.add("accepts", of("receipt, p50 ms"), spread("%.1f", p50), "")
		s.add("accepts", of("receipt, p99 ms"), spread("%.1f", p99), soon)
		s.add("accepts", of("server CPU an accept, µs"), spread("%.1f", cpus), "")
	}
	return nil
}

// fewest is how many messages a device must have in flight for the rate of the goal: a power of two.
func fewest(ctx context.Context, s *suite) (flying int, err error) {
	for flying = 1; flying < acceptWindow; flying *= 2 {
		r, err := acceptOnce(ctx, s, acceptMode{"always", flying}, acceptFor/3)
		if err != nil {
			return 0, err
		}
		fmt.Printf("  with %d in flight each: %.0f a second, p99 %.1f ms\n", flying, r.rate, r.p99)
		if r.rate >= acceptGoal*1.1 { // the longer runs must not fall below it by chance
			break
		}
	}
	return flying, nil
}

type accepted struct{ rate, p50, p99, cpu float64 }

// sender keeps a number of texts of one device on their way.
type sender struct {
	sent, got int
	at        [acceptWindow]time.Time
	delays    []time.Duration
}

func acceptOnce(ctx context.Context, s *suite, mode acceptMode, d time.Duration) (r accepted, err error) {
	p, err := s.serve(ctx, "accepts", "MOBILE_SYNC="+mode.sync)
	if err != nil {
		return r, err
	}
	defer p.drop()
	senders := make([]sender, acceptDevices)
	var measuring, ending atomic.Bool
	var receipts, left atomic.Int64
	done := make(chan struct{})
	body := strings.Repeat("a message of two hundred bytes ", 6)
	more := func(d *device) {
		q := &senders[d.i]
		q.at[q.sent%acceptWindow] = time.Now()
		d.queue(ws.OpText, []byte(`{"t":"text","id":"a`+strconv.Itoa(q.sent)+`","text":"`+body+`"}`))
		q.sent++
	}
	left.Store(acceptDevices)
	f, err := open(ctx, p.addr, 0, acceptDevices, func(d *device, kind string, b []byte) {
		if kind == "pong" { // of the ping below: from here on only this goroutine touches senders
			for range mode.flying {
				more(d)
			}
		}
		if kind != "accepted" {
			return
		}
		q := &senders[d.i]
		if n := number(b, `"id":"a`); n != int64(q.got) || !has(b, `"duplicate":false`) || !has(b, `"queued":true`) {
			d.fleet.fail(fmt.Errorf("receipt %d of %s is %s", q.got, d.id, b))
			return
		}
		if measuring.Load() {
			receipts.Add(1)
			q.delays = append(q.delays, time.Since(q.at[q.got%acceptWindow]))
		}
		q.got++
		switch {
		case !ending.Load():
			more(d)
		case q.got == q.sent:
			if left.Add(-1) == 0 {
				close(done)
			}
		}
	})
	if err != nil {
		return r, err
	}
	defer f.close()
	for _, d := range f.list {
		d.send([]byte(`{"t":"ping","id":"begin"}`))
	}
	if err := f.pause(ctx, time.Second); err != nil {
		return r, err
	}
	stop := s.capture(ctx, p, "accepts", d)
	begin, cpu := time.Now(), p.cpu()
	measuring.Store(true)
	if err := f.pause(ctx, d); err != nil {
		return r, err
	}
	measuring.Store(false)
	took, used := time.Since(begin), p.cpu()-cpu
	stop()
	ending.Store(true)
	if err := f.wait(ctx, done, "receipts are missing"); err != nil {
		return r, err
	}
	total := 0
	var delays []time.Duration
	for i := range senders {
		total += senders[i].got
		delays = append(delays, senders[i].delays...)
	}
	m, err := p.metrics(ctx)
	if err != nil {
		return r, err
	}
	if stored := int(m["hermes_mobile_accepted_total"]); stored != total {
		return r, fmt.Errorf("%d receipts came, the server counts %d", total, stored)
	}
	n := float64(receipts.Load())
	return accepted{n / took.Seconds(), ms(quantile(delays, 0.5)), ms(quantile(delays, 0.99)), used.Seconds() * 1e6 / n}, nil
}
