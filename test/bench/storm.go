package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store" // and with it the driver "sqlite"
)

// waitingEach is how many frames wait for each device in storm.
const waitingEach = 20

// full is a data folder in which much waits for many devices.
type full struct {
	data   string
	epochs []string

	rate, cpu float64 // deliveries a second of the filling, and µs of the server for one
}

// fill makes the folder. All of it goes through a server, whose process is killed in the end: that
// is the worse way to leave a database behind.
func (s *suite) fill(ctx context.Context) (*full, error) {
	p, err := s.serve(ctx, "full")
	if err != nil {
		return nil, err
	}
	defer p.kill()
	f, err := open(ctx, p.addr, 0, s.storm, nil)
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
	queued, err := out.deliver(ctx, s.storm, waitingEach, storedText)
	if err != nil {
		return nil, err
	}
	n := s.storm * waitingEach
	if queued != n {
		return nil, fmt.Errorf("%d of %d deliveries were queued", queued, n)
	}
	made.rate, made.cpu = float64(n)/time.Since(begin).Seconds(), (p.cpu()-cpu).Seconds()*1e6/float64(n)
	stop()
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

// storm lets all devices come back at once, to each its waiting frames, which it acknowledges.
func storm(ctx context.Context, s *suite) error {
	var rates, fills, delivered, acked, all99, own50, own99, cpus []float64
	for range s.repeat {
		r, err := stormOnce(ctx, s)
		if err != nil {
			return err
		}
		rates, fills, cpus = append(rates, r.full.rate), append(fills, r.full.cpu), append(cpus, r.cpu)
		delivered, acked, all99 = append(delivered, r.delivered), append(acked, r.acked), append(all99, r.all99)
		own50, own99 = append(own50, r.own50), append(own99, r.own99)
	}
	s.add("storm", "deliveries to absent devices a second, CPU each", spread("%.0f", rates)+", "+spread("%.0f µs", fills), "")
	s.add("storm", fmt.Sprintf("until %d devices have their %d frames, s", s.storm, waitingEach), spread("%.2f", delivered), "")
	s.add("storm", "until the server has all acknowledgements, s", spread("%.2f", acked), verdict("<= 5", middle(acked) <= 5))
	s.add("storm", fmt.Sprintf("a device from its dial to its last frame, %d dial at a time, p50 s", atOnce), spread("%.2f", own50), "")
	s.add("storm", "the same, p99 s", spread("%.2f", own99), verdict("<= 3", middle(own99) <= 3))
	s.add("storm", "a device from the beginning of the storm, p99 s", spread("%.2f", all99), "")
	s.add("storm", "server CPU a device, µs", spread("%.0f", cpus), "")
	return nil
}

type stormed struct {
	full                                       *full
	delivered, acked, all99, own50, own99, cpu float64
}

func stormOnce(ctx context.Context, s *suite) (r stormed, err error) {
	if r.full, err = s.fill(ctx); err != nil {
		return r, err
	}
	p, err := s.launch(r.full.data)
	if err != nil {
		return r, err
	}
	defer p.drop()
	if err := p.await(ctx); err != nil {
		return r, err
	}
	time.Sleep(time.Second)

	f := &fleet{list: make([]*device, s.storm), lost: make(chan error, 1)}
	defer f.close()
	got := make([]int, s.storm)
	dialled, last := make([]time.Time, s.storm), make([]time.Time, s.storm)
	var left atomic.Int64
	left.Store(int64(s.storm))
	done := make(chan struct{})
	stop := s.capture(ctx, p, "storm", 6*time.Second)
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
			last[d.i] = time.Now()
			d.send(frame.EncodeUp(&frame.Ack{Seq: seq}))
			if left.Add(-1) == 0 {
				close(done)
			}
		}
	}
	if err := f.rejoin(ctx, p.addr, r.full, dialled, on); err != nil {
		return r, err
	}
	if err := f.wait(ctx, done, "frames are missing"); err != nil {
		return r, err
	}
	r.delivered = time.Since(begin).Seconds()
	if err := p.emptied(ctx); err != nil {
		return r, err
	}
	r.acked, r.cpu = time.Since(begin).Seconds(), (p.cpu()-cpu).Seconds()*1e6/float64(s.storm)
	stop()
	own, all := make([]time.Duration, s.storm), make([]time.Duration, s.storm)
	for i, n := range got {
		if n != waitingEach {
			return r, fmt.Errorf("%s got %d frames of %d", deviceID(i), n, waitingEach)
		}
		own[i], all[i] = last[i].Sub(dialled[i]), last[i].Sub(begin)
	}
	r.own50, r.own99, r.all99 = quantile(own, 0.5).Seconds(), quantile(own, 0.99).Seconds(), quantile(all, 0.99).Seconds()
	return r, nil
}

// atOnce is how many devices of a storm are shaking hands at a time: the kernel's queue of the
// listener has room for them.
const atOnce = 512

// rejoin connects all devices with the cursor of a client that has nothing yet, and notes when each
// dialled.
func (f *fleet) rejoin(ctx context.Context, addr string, filled *full, dialled []time.Time, on func(*device, string, []byte)) error {
	var next atomic.Int64
	var work sync.WaitGroup
	for range min(atOnce, len(f.list)) {
		work.Go(func() {
			for ctx.Err() == nil && len(f.lost) == 0 {
				i := int(next.Add(1)) - 1
				if i >= len(f.list) {
					return
				}
				dialled[i] = time.Now()
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

// emptied waits until nothing waits for anybody any more. It looks into the database, since asking
// the server for its devices would give it thousands of questions to answer meanwhile.
func (p *process) emptied(ctx context.Context) error {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(p.data, store.File)+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	for {
		var waiting bool
		if err := db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM outbox)").Scan(&waiting); err != nil {
			return fmt.Errorf("look for what is not acknowledged: %w", err)
		}
		if !waiting {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not all is acknowledged: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
