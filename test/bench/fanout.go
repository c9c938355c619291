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

// fanoutRounds are counted in each run, after one that warms up.
const fanoutRounds = 3

// fanoutRest is how long a round rests. What a server leaves for later, as ours does the note that a text was sent, is done by then: it
// costs the round's CPU, and not the next round's time.
const fanoutRest = 2 * time.Second

// news is one text on its way to all devices.
type news struct {
	quoted string // as it stands in a frame
	begin  time.Time
	delays []time.Duration // by device, 0 until it came
	left   atomic.Int64
	done   chan struct{}
}

// fanned are the figures of fan-outs.
type fanned struct{ all, p50, p99, cpu measured }

func newFanned() fanned { return fanned{measured{}, measured{}, measured{}, measured{}} }

// fanout delivers one text to each of many connected devices, from one connection with a delivery token: in a delivery for
// each device, and, where there is such a thing, in one for all.
func fanout(ctx context.Context, s *suite) error {
	each, once := newFanned(), newFanned()
	contestants := s.contestants()
	for range s.repeat {
		for _, v := range contestants {
			if err := fanoutOnce(ctx, s, v, each, once); err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
		}
	}
	for _, v := range contestants {
		s.add("fanout", v.of(fmt.Sprintf("until each of %d devices has its text, ms", s.n)), spread("%.0f", each.all[v]), "")
		s.add("fanout", v.of("a device, p50 ms"), spread("%.0f", each.p50[v]), "")
		s.add("fanout", v.of("a device, p99 ms"), spread("%.0f", each.p99[v]), "")
		s.add("fanout", v.of("server CPU a delivery, µs"), spread("%.1f", each.cpu[v]), "")
		if !v.ours() {
			s.add("fanout", v.of("one delivery to all: until each has it, ms"), spread("%.0f", once.all[v]), "")
			s.add("fanout", v.of("one delivery to all: server CPU a device, µs"), spread("%.1f", once.cpu[v]), "")
		}
	}
	s.compare("fanout", "until each has its text", each.all, each.all.bare(), 2)
	s.compare("fanout", "server CPU a delivery", each.cpu, each.cpu.bare(), 2)
	// Ours knows no delivery to all: what it takes for one to each stands against it.
	for v, values := range each.all {
		if v.ours() {
			once.all[v], once.cpu[v] = values, each.cpu[v]
		}
	}
	s.compare("fanout", "until each has its text, against one delivery to all", once.all, once.all.bare(), 2)
	s.compare("fanout", "server CPU a device, against one delivery to all", once.cpu, once.cpu.bare(), 2)
	return nil
}

func fanoutOnce(ctx context.Context, s *suite, v *contestant, each, once fanned) error {
	p, err := s.begin(ctx, v, "fanout")
	if err != nil {
		return err
	}
	defer p.drop()
	var now atomic.Pointer[news]
	f, err := openAs(ctx, v.speech, p.addr, 0, s.n, func(d *device, kind string, b []byte) {
		if kind != "message" {
			return
		}
		n := now.Load()
		if !has(b, n.quoted) || n.delays[d.i] != 0 {
			d.fleet.fail(fmt.Errorf("%s was delivered %s", d.id, b))
			return
		}
		n.delays[d.i] = time.Since(n.begin)
		if n.left.Add(-1) == 0 {
			close(n.done)
		}
	})
	if err != nil {
		return err
	}
	defer f.close()
	out, err := openSenderAs(ctx, v.speech, p.addr)
	if err != nil {
		return err
	}
	defer out.close()

	round := func(k int, to fanned, deliver func(body string) error) error {
		body := "news " + strconv.Itoa(k)
		n := &news{quoted: `"text":"` + body + `"`, delays: make([]time.Duration, s.n), done: make(chan struct{})}
		n.left.Store(int64(s.n))
		stop := s.capture(ctx, p, "fanout", time.Second)
		cpu := p.cpu()
		n.begin = time.Now()
		now.Store(n)
		if err := deliver(body); err != nil {
			return err
		}
		if err := f.wait(ctx, n.done, "deliveries are missing"); err != nil {
			return err
		}
		took := time.Since(n.begin)
		stop()
		if err := f.pause(ctx, fanoutRest); err != nil {
			return err
		}
		used := p.cpu() - cpu
		if k%(fanoutRounds+1) > 0 {
			to.all.add(v, ms(took))
			to.p50.add(v, ms(quantile(n.delays, 0.5)))
			to.p99.add(v, ms(quantile(n.delays, 0.99)))
			to.cpu.add(v, used.Seconds()*1e6/float64(s.n))
		}
		return nil
	}
	for k := range fanoutRounds + 1 {
		err := round(k, each, func(body string) error {
			queued, err := out.deliver(ctx, s.n, 1, body)
			if err == nil && queued > 0 {
				err = fmt.Errorf("%d deliveries to connected devices were only queued", queued)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	if v.ours() {
		return nil
	}
	for k := range fanoutRounds + 1 {
		if err := round(k+fanoutRounds+1, once, func(body string) error { return out.deliverAll(ctx, body) }); err != nil {
			return err
		}
	}
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
	return openSenderAs(ctx, nil, addr)
}

func openSenderAs(ctx context.Context, speech *dialect, addr string) (*outlet, error) {
	d, err := enterAs(ctx, speech, addr, "sender", deliverToken, nil)
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

// deliverAll sends all devices a text in one delivery, which only yardsticks understand.
func (o *outlet) deliverAll(ctx context.Context, body string) error {
	o.serial++
	o.send(frame.EncodeUp(&frame.Deliver{ID: "x" + strconv.Itoa(o.serial), To: "all", Text: body}))
	select {
	case a, ok := <-o.answers:
		if !ok {
			return errors.New("the sender's connection ended")
		}
		return a.err
	case <-ctx.Done():
		return fmt.Errorf("the delivery has no receipt: %w", ctx.Err())
	}
}
