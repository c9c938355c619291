package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"

	"github.com/gobwas/ws"
)

// fanout delivers one text to each of many connected devices, from one connection with a delivery token.
func fanout(ctx context.Context, s *suite) error {
	p, err := s.serve(ctx, "fanout")
	if err != nil {
		return err
	}
	defer p.drop()
	var begin time.Time
	var left atomic.Int64
	var round atomic.Pointer[chan struct{}]
	var want atomic.Pointer[string]
	delays := make([]time.Duration, s.n)
	f, err := open(ctx, p.addr, 0, s.n, func(d *device, kind string, b []byte) {
		if kind != "message" {
			return
		}
		if !has(b, *want.Load()) {
			d.fleet.fail(fmt.Errorf("%s was delivered %s", d.id, b))
			return
		}
		delays[d.i] = time.Since(begin)
		if left.Add(-1) == 0 {
			close(*round.Load())
		}
	})
	if err != nil {
		return err
	}
	defer f.close()
	out, err := openSender(ctx, p.addr)
	if err != nil {
		return err
	}
	defer out.close()

	var all, p50, p99, cpus []float64
	for k := range s.repeat + 1 { // the first one warms up and is not counted
		done := make(chan struct{})
		body := "news " + strconv.Itoa(k)
		quoted := `"text":"` + body + `"`
		want.Store(&quoted)
		round.Store(&done)
		left.Store(int64(s.n))
		stop := s.capture(ctx, p, "fanout", time.Second)
		cpu := p.cpu()
		begin = time.Now()
		queued, err := out.deliver(ctx, s.n, 1, body)
		if err != nil {
			return err
		}
		if err := f.wait(ctx, done, "deliveries are missing"); err != nil {
			return err
		}
		took, used := time.Since(begin), p.cpu()-cpu
		stop()
		if queued > 0 {
			return fmt.Errorf("%d deliveries to connected devices were only queued", queued)
		}
		if k > 0 {
			all, cpus = append(all, ms(took)), append(cpus, used.Seconds()*1e6/float64(s.n))
			p50, p99 = append(p50, ms(quantile(delays, 0.5))), append(p99, ms(quantile(delays, 0.99)))
		}
		if err := f.pause(ctx, 500*time.Millisecond); err != nil {
			return err
		}
	}
	s.add("fanout", fmt.Sprintf("until each of %d devices has its text, ms", s.n), spread("%.0f", all), "")
	s.add("fanout", "a device, p50 ms", spread("%.0f", p50), "")
	s.add("fanout", "a device, p99 ms", spread("%.0f", p99), "")
	s.add("fanout", "server CPU a delivery, µs", spread("%.1f", cpus), "")
	return nil
}

// outlet is a connection with a delivery token.
type outlet struct {
	*device
	answers chan outcome
	serial  int
}

type outcome struct {
	queued bool
	err    error
}

// outletWindow is how many deliveries wait for their receipt at most.
const outletWindow = 4096

func openSender(ctx context.Context, addr string) (*outlet, error) {
	d, err := enter(ctx, addr, "sender", deliverToken, nil)
	if err != nil {
		return nil, err
	}
	o := &outlet{device: d, answers: make(chan outcome, outletWindow)}
	go func() {
		defer close(o.answers)
		for {
			p, err := d.next()
			if err != nil {
				return
			}
			switch kind(p) {
			case "delivered":
				o.answers <- outcome{queued: has(p, `"queued":true`)}
			case "error":
				o.answers <- outcome{err: errors.New(string(p))}
			}
		}
	}()
	return o, nil
}

// deliver sends each of the first n devices some texts and returns, when all have their receipt, how many were queued.
func (o *outlet) deliver(ctx context.Context, n, each int, body string) (queued int, err error) {
	flying := 0
	take := func() error {
		o.flush()
		select {
		case a, ok := <-o.answers:
			if !ok {
				return errors.New("the sender's connection ended")
			}
			flying--
			if a.queued {
				queued++
			}
			return a.err
		case <-ctx.Done():
			return fmt.Errorf("%d deliveries have no receipt: %w", flying, ctx.Err())
		}
	}
	for i := range n {
		for range each {
			o.serial++
			o.queue(ws.OpText, frame.EncodeUp(&frame.Deliver{ID: "x" + strconv.Itoa(o.serial), To: deviceID(i), Text: body}))
			flying++
		}
		if i%64 == 0 {
			o.flush()
		}
		for flying >= outletWindow-each {
			if err := take(); err != nil {
				return queued, err
			}
		}
	}
	for flying > 0 {
		if err := take(); err != nil {
			return queued, err
		}
	}
	return queued, nil
}
