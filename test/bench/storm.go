package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/server"
)

// waitingEach is how many frames wait for each device in start and storm.
const waitingEach = 20

// full is a data folder in which much waits for many devices.
type full struct {
	data   string
	epochs []string
}

// fill makes the folder, once. All of it goes through a server, whose process is killed in the end: that is the worse way
// to leave a database behind.
func (s *suite) fill(ctx context.Context) (*full, error) {
	if s.full != nil {
		return s.full, nil
	}
	p, err := s.serve(ctx, "full")
	if err != nil {
		return nil, err
	}
	defer p.kill()
	f, err := open(ctx, p.addr, 0, s.n, nil)
	if err != nil {
		return nil, err
	}
	made := &full{data: p.data}
	for _, d := range f.list {
		made.epochs = append(made.epochs, d.ready.epoch)
	}
	f.close()
	if err := p.gone(ctx); err != nil {
		return nil, err
	}
	out, err := openSender(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	defer out.close()
	stop := s.capture(ctx, p, "fill", 5*time.Second)
	begin, cpu := time.Now(), p.cpu()
	queued, err := out.deliver(ctx, s.n, waitingEach, "a message of some hundred bytes, as they are when people write to one another about this and that")
	if err != nil {
		return nil, err
	}
	n := s.n * waitingEach
	if queued != n {
		return nil, fmt.Errorf("%d of %d deliveries were queued", queued, n)
	}
	s.add("start", "deliveries to absent devices a second, CPU each", fmt.Sprintf("%.0f, %.0f µs", float64(n)/time.Since(begin).Seconds(), (p.cpu()-cpu).Seconds()*1e6/float64(n)), "")
	stop()
	s.full = made
	return made, nil
}

// gone waits until the server knows that all its devices have left.
func (p *process) gone(ctx context.Context) error {
	for {
		m, err := p.metrics(ctx)
		if err != nil {
			return err
		}
		if m["hermes_mobile_device_connections"] == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("connections do not end")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// start measures the time from the start of the process to the first ready, with much stored: after a kill, and after an
// orderly end.
func start(ctx context.Context, s *suite) error {
	f, err := s.fill(ctx)
	if err != nil {
		return err
	}
	var killed, ended []float64
	for range s.repeat {
		for _, afterKill := range []bool{true, false} {
			p, err := s.launch(f.data)
			if err != nil {
				return err
			}
			took, err := p.firstReady(ctx, f)
			switch {
			case err != nil:
				p.kill()
				return err
			case afterKill:
				killed = append(killed, ms(took))
				p.stop()
			default:
				ended = append(ended, ms(took))
				p.kill()
			}
		}
	}
	n := s.n * waitingEach
	s.add("start", fmt.Sprintf("exec to ready, %d frames stored, after kill -9, ms", n), spread("%.0f", killed), "")
	s.add("start", "the same after an orderly end, ms", spread("%.0f", ended), "")
	return nil
}

// firstReady connects a device as soon as it can, with the cursor of one that has nothing yet.
func (p *process) firstReady(ctx context.Context, f *full) (time.Duration, error) {
	if err := p.await(ctx); err != nil {
		return 0, err
	}
	d, err := enter(ctx, p.addr, deviceID(7), appToken, &frame.Cursor{Epoch: f.epochs[7]})
	if err != nil {
		return 0, err
	}
	took := time.Since(p.began)
	d.close()
	if d.ready.from != 1 || d.ready.to != waitingEach {
		return 0, fmt.Errorf("frames %d to %d wait for the device: what was stored is gone", d.ready.from, d.ready.to)
	}
	return took, nil
}

// storm lets all devices come back at once, to each its waiting frames, which it acknowledges.
func storm(ctx context.Context, s *suite) error {
	filled, err := s.fill(ctx)
	if err != nil {
		return err
	}
	p, err := s.launch(filled.data)
	if err != nil {
		return err
	}
	defer p.drop()
	defer func() { s.full = nil }()
	if err := p.await(ctx); err != nil {
		return err
	}
	time.Sleep(time.Second)

	f := &fleet{list: make([]*device, s.n), lost: make(chan error, 1)}
	defer f.close()
	got := make([]int, s.n)
	took := make([]time.Duration, s.n)
	var left atomic.Int64
	left.Store(int64(s.n))
	done := make(chan struct{})
	stop := s.capture(ctx, p, "storm", 3*time.Second)
	begin, cpu := time.Now(), p.cpu()
	on := func(d *device, kind string, b []byte) {
		if kind != "message" {
			return
		}
		seq := number(b, `"seq":`)
		if got[d.i]++; seq != int64(got[d.i]) {
			f.fail(fmt.Errorf("frame %d of %s has seq %d", got[d.i], d.id, seq))
			return
		}
		if got[d.i] == waitingEach {
			took[d.i] = time.Since(begin)
			d.send(frame.EncodeUp(&frame.Ack{Seq: seq}))
			if left.Add(-1) == 0 {
				close(done)
			}
		}
	}
	if err := f.rejoin(ctx, p.addr, filled, on); err != nil {
		return err
	}
	if err := f.wait(ctx, done, "frames are missing"); err != nil {
		return err
	}
	delivered := time.Since(begin)
	if err := p.emptied(ctx); err != nil {
		return err
	}
	acked, used := time.Since(begin), p.cpu()-cpu
	stop()
	for i, n := range got {
		if n != waitingEach {
			return fmt.Errorf("%s got %d frames of %d", deviceID(i), n, waitingEach)
		}
	}
	s.add("storm", fmt.Sprintf("until %d devices have their %d frames, s", s.n, waitingEach), fmt.Sprintf("%.2f", delivered.Seconds()), "")
	s.add("storm", "until the server has all acknowledgements, s", fmt.Sprintf("%.2f", acked.Seconds()), "")
	s.add("storm", "a device from the beginning, p50 and p99 s", fmt.Sprintf("%.2f, %.2f", quantile(took, 0.5).Seconds(), quantile(took, 0.99).Seconds()), "")
	s.add("storm", "server CPU a device, µs", fmt.Sprintf("%.0f", used.Seconds()*1e6/float64(s.n)), "")
	return nil
}

// atOnce is how many devices of a storm are shaking hands at a time: the kernel's queue of the listener has room for them.
const atOnce = 512

// rejoin connects all devices with the cursor of a client that has nothing yet.
func (f *fleet) rejoin(ctx context.Context, addr string, filled *full, on func(*device, string, []byte)) error {
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(atOnce, len(f.list)) {
		work.Go(func() {
			for ctx.Err() == nil && len(f.lost) == 0 {
				i := int(next.Add(1)) - 1
				if i >= len(f.list) {
					return
				}
				d, err := enter(ctx, addr, deviceID(i), appToken, &frame.Cursor{Epoch: filled.epochs[i]})
				if err != nil {
					f.fail(err)
					return
				}
				if d.ready.from != 1 || d.ready.to != waitingEach {
					f.fail(fmt.Errorf("%s is promised frames %d to %d", d.id, d.ready.from, d.ready.to))
				}
				f.adopt(i, d, on)
			}
		})
	}
	work.Wait()
	return nil
}

// emptied waits until nothing waits for anybody any more.
func (p *process) emptied(ctx context.Context) error {
	c := server.NewClient(p.data)
	for {
		var list []hub.DeviceInfo
		if err := c.Get(ctx, "/devices", &list); err != nil {
			return err
		}
		waiting := 0
		for _, d := range list {
			waiting += d.Waiting
		}
		if waiting == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d frames are not acknowledged", waiting)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
