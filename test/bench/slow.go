package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
)

const (
	slowOthers = 1000
	slowSteps  = 8
	slowRest   = 2 * time.Second
	slowFor    = 10 * time.Second

	// What the slow device is delivered in each run, so that it is far behind: far more than the kernel buffers, and less than
	// what an outbox keeps.
	slowText  = 128 << 10
	slowFirst = 128                    // at once
	slowEvery = 200 * time.Millisecond // and then
)

// slow measures what one device does to the others that stops reading while much comes for it. It reads and does not read in
// alternate runs, and is delivered the same in both; afterwards it reads on, and must get all of it.
func slow(ctx context.Context, s *suite) error {
	p, err := s.serve(ctx, "slow")
	if err != nil {
		return err
	}
	defer p.drop()
	x, err := openPaced(ctx, p.addr, slowOthers, slowSteps, draftEvery, slowRest)
	if err != nil {
		return err
	}
	defer x.close()
	if err := x.begin(ctx); err != nil {
		return err
	}
	out, err := openSender(ctx, p.addr)
	if err != nil {
		return err
	}
	defer out.close()
	var p50, p99, rss, heap, cpus [2][]float64 // reading, not reading
	left := 0.0
	for k := range 2*s.repeat + 1 { // the first run warms up
		stalled := k % 2
		r, err := slowOnce(ctx, s, p, x, out, fmt.Sprintf("slow%d", k), stalled == 1)
		if err != nil {
			return fmt.Errorf("run %d: %w", k, err)
		}
		if k == 0 {
			continue
		}
		p50[stalled], p99[stalled] = append(p50[stalled], r.p50), append(p99[stalled], r.p99)
		rss[stalled], heap[stalled] = append(rss[stalled], r.rss), append(heap[stalled], r.heap)
		cpus[stalled] = append(cpus[stalled], r.cpu)
		left = max(left, r.left)
	}
	if err := x.finish(ctx); err != nil {
		return err
	}
	of := fmt.Sprintf("%d others chat, op written to frame read: ", slowOthers)
	s.add("slow", of+"p50 ms while it reads; while it does not", spread("%.2f", p50[0])+"; "+spread("%.2f", p50[1]), "")
	same := ""
	if s.repeat > 1 { // one run has no spread
		same = verdict("no more than the spread of the first", middle(p99[1]) <= slices.Max(p99[0]))
	}
	s.add("slow", of+"p99 ms while it reads; while it does not", spread("%.2f", p99[0])+"; "+spread("%.2f", p99[1]), same)
	s.add("slow", "server CPU of one core, the same, %", spread("%.1f", cpus[0])+"; "+spread("%.1f", cpus[1]), "")
	s.add("slow", "what it has not read at the end of a run, at most", fmt.Sprintf("%.1f MiB", left), "")
	s.add("slow", "most RSS while it reads; while it does not, MiB", spread("%.1f", rss[0])+"; "+spread("%.1f", rss[1]), "")
	s.add("slow", "heap and stacks in use after a collection, the same, MiB", spread("%.1f", heap[0])+"; "+spread("%.1f", heap[1]),
		verdict("<= 24 more, the most that may wait for a device", middle(heap[1])-middle(heap[0]) <= 24))
	return nil
}

type slowed struct{ p50, p99, rss, heap, cpu, left float64 }

func slowOnce(ctx context.Context, s *suite, p *process, x *paced, out *outlet, id string, stalled bool) (r slowed, err error) {
	reader, err := startIdler(ctx, p.addr, id)
	if err != nil {
		return r, err
	}
	readOn := sync.OnceFunc(func() { close(reader.on) })
	defer func() {
		readOn()
		reader.close()
	}()
	if !stalled {
		readOn()
	}

	body := strings.Repeat("much to read. ", slowText/14)
	sent := 0
	deliver := func() error {
		sent++
		out.serial++
		out.send(frame.EncodeUp(&frame.Deliver{ID: fmt.Sprintf("s%d", out.serial), To: id, Text: body}))
		select {
		case a, ok := <-out.answers:
			if !ok {
				return errors.New("the sender's connection ended")
			}
			return a.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for range slowFirst {
		if err := deliver(); err != nil {
			return r, err
		}
	}
	feeding, enough := context.WithCancel(ctx)
	var feeder sync.WaitGroup
	var fed error
	var peak atomic.Int64
	feeder.Go(func() {
		tick := time.NewTicker(slowEvery)
		defer tick.Stop()
		for fed == nil {
			select {
			case <-feeding.Done():
				return
			case <-tick.C:
			}
			fed = deliver()
			peak.Store(max(peak.Load(), p.rss()))
		}
	})
	stop := s.capture(ctx, p, "slow", slowFor)
	used := p.cpu()
	all, err := x.watch(ctx, slowFor)
	used = p.cpu() - used
	stop()
	enough()
	feeder.Wait()
	if err = errors.Join(err, fed); err != nil {
		return r, err
	}
	live, err := p.live(ctx)
	if err != nil {
		return r, err
	}
	steps := append(all.first, all.later...)
	r = slowed{p50: ms(quantile(steps, 0.5)), p99: ms(quantile(steps, 0.99)), rss: float64(peak.Load()) / (1 << 20), heap: live / (1 << 20)}
	r.cpu = used.Seconds() / slowFor.Seconds() * 100
	r.left = float64(int64(sent)-reader.got.Load()) * slowText / (1 << 20)
	readOn()
	for reader.got.Load() < int64(sent) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-reader.done:
			return r, fmt.Errorf("%d of %d deliveries came: %w", reader.got.Load(), sent, reader.err)
		case <-ctx.Done():
			return r, fmt.Errorf("%d of %d deliveries came: %w", reader.got.Load(), sent, ctx.Err())
		}
	}
	return r, nil
}

// idler is a device that reads once it may, and comes back as an app does when it was dropped meanwhile.
type idler struct {
	addr, id string
	d        atomic.Pointer[device]
	on       chan struct{}
	got      atomic.Int64 // deliveries
	ending   atomic.Bool
	done     chan struct{}
	err      error // read it after done
}

func startIdler(ctx context.Context, addr, id string) (*idler, error) {
	d, err := enter(ctx, addr, id, appToken, nil)
	if err != nil {
		return nil, err
	}
	i := &idler{addr: addr, id: id, on: make(chan struct{}), done: make(chan struct{})}
	i.d.Store(d)
	go func() {
		defer close(i.done)
		select {
		case <-i.on:
			i.err = i.read(ctx)
		case <-ctx.Done():
		}
	}()
	return i, nil
}

func (i *idler) read(ctx context.Context) error {
	for d := i.d.Load(); ; {
		b, err := d.next()
		if i.ending.Load() {
			return nil
		}
		if err != nil {
			fmt.Println("  the slow device was dropped, and comes back:", err)
			seq := i.got.Load()
			epoch := d.ready.epoch
			if d, err = enter(ctx, i.addr, i.id, appToken, &frame.Cursor{Epoch: epoch, Seq: seq}); err != nil {
				return err
			}
			i.d.Store(d)
			continue
		}
		if kind(b) != "message" || !has(b, `"final":true`) { // the pieces of one delivery have one seq
			continue
		}
		seq := number(b, `"seq":`)
		if got := i.got.Load() + 1; seq != got {
			return fmt.Errorf("the slow device got frame %d as number %d", seq, got)
		}
		d.send(frame.EncodeUp(&frame.Ack{Seq: seq}))
		i.got.Store(seq)
	}
}

// close ends it, once it may read.
func (i *idler) close() {
	i.ending.Store(true)
	i.d.Load().close()
	<-i.done
}
