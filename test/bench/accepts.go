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
	acceptWindow  = 32
	acceptFor     = 6 * time.Second
)

// accepts measures how many messages a second are accepted, with each choice of MOBILE_SYNC in turn, so that both see the same
// disk. No gateway is connected, so that nothing else happens.
func accepts(ctx context.Context, s *suite) error {
	modes := []string{"always", "interval"}
	results := map[string][]accepted{}
	for range s.repeat {
		for _, mode := range modes {
			r, err := acceptOnce(ctx, s, mode)
			if err != nil {
				return err
			}
			results[mode] = append(results[mode], r)
		}
	}
	for _, mode := range modes {
		var rates, p50, p99, cpus []float64
		for _, r := range results[mode] {
			rates, p50, p99, cpus = append(rates, r.rate), append(p50, r.p50), append(p99, r.p99), append(cpus, r.cpu)
		}
		expected := ""
		if mode == "always" {
			expected = ">= 10000"
		}
		s.add("accepts", fmt.Sprintf("accepts a second, %d devices, %d in flight each, sync %s", acceptDevices, acceptWindow, mode), spread("%.0f", rates), expected)
		s.add("accepts", "receipt, p50 ms, sync "+mode, spread("%.1f", p50), "")
		s.add("accepts", "receipt, p99 ms, sync "+mode, spread("%.1f", p99), "")
		s.add("accepts", "server CPU an accept, µs, sync "+mode, spread("%.1f", cpus), "")
	}
	return nil
}

type accepted struct{ rate, p50, p99, cpu float64 }

// sender keeps a number of texts of one device on their way.
type sender struct {
	sent, got int
	at        [acceptWindow]time.Time
	delays    []time.Duration
}

func acceptOnce(ctx context.Context, s *suite, mode string) (r accepted, err error) {
	p, err := s.serve(ctx, "accepts", "MOBILE_SYNC="+mode)
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
			for range acceptWindow {
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
	stop := s.capture(ctx, p, "accepts", acceptFor)
	begin, cpu := time.Now(), p.cpu()
	measuring.Store(true)
	if err := f.pause(ctx, acceptFor); err != nil {
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
