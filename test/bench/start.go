package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

// What is stored in start. Nearly all of it is written straight into the database, which takes
// seconds where a server takes minutes; the newest fiftieth comes through a server that is killed,
// so that a log of that life is left behind.
const (
	storedEach   = 100 // frames a device
	newestShare  = 50
	leastFrames  = 10_000
	storedText   = "a message of some hundred bytes, as they are when people write to one another about this and that"
	storedDevice = 7 // the device that connects: it has both kinds
)

// stocked is a data folder in which many frames are stored.
type stocked struct {
	data   string
	epoch  string // of storedDevice
	frames int
}

func (s *suite) stock(ctx context.Context) (*stocked, error) {
	data, err := os.MkdirTemp(s.dir, "start-")
	if err != nil {
		return nil, err
	}
	newest := s.frames / newestShare / waitingEach // devices that get waitingEach more through the server
	devices := (s.frames - newest*waitingEach) / storedEach
	made := &stocked{data: data, frames: devices*storedEach + newest*waitingEach}
	begin := time.Now()
	if made.epoch, err = stockStore(ctx, data, devices); err != nil {
		return nil, err
	}
	fmt.Printf("  %d frames of %d devices stored in %.0f s\n", devices*storedEach, devices, time.Since(begin).Seconds())
	p, err := s.launch(data)
	if err != nil {
		return nil, err
	}
	defer p.kill()
	if err := p.await(ctx); err != nil {
		return nil, err
	}
	out, err := openSender(ctx, p.addr)
	if err != nil {
		return nil, err
	}
	defer out.close()
	queued, err := out.deliver(ctx, newest, waitingEach, storedText)
	if err == nil && queued != newest*waitingEach {
		err = fmt.Errorf("%d of %d deliveries were queued", queued, newest*waitingEach)
	}
	return made, err
}

// stockStore fills a database as the hub does, and returns the epoch of storedDevice.
func stockStore(ctx context.Context, data string, devices int) (epoch string, err error) {
	st, err := store.Open(ctx, data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	failed := make(chan error, devices)
	for i := range devices {
		st.Go(func(tx *store.Tx) error {
			now := time.Now()
			d := &store.Device{ID: deviceID(i), Name: "Bench", Platform: "bench", App: "bench/1", UserID: deviceID(i)}
			if err := tx.AddDevice(d, now); err != nil {
				return err
			}
			if i == storedDevice {
				epoch = d.Epoch
			}
			for seq := int64(1); seq <= storedEach; seq++ {
				m := &frame.Message{ID: fmt.Sprintf("%08x%010x", i, seq), Text: storedText, Chunk: frame.Chunk{Total: 1}, Final: true}
				body, err := json.Marshal(struct {
					Message *frame.Message `json:"message"`
				}{m})
				if err != nil {
					return err
				}
				if err := tx.Append(d.N, seq, store.KindMessage, body, "", now); err != nil {
					return err
				}
			}
			return nil
		}, func(err error) { failed <- err })
	}
	for range devices {
		if e := <-failed; err == nil {
			err = e
		}
	}
	return epoch, err
}

// start measures the time from the start of the process to the first ready, with much stored: after
// a kill, and after an orderly end.
func start(ctx context.Context, s *suite) error {
	f, err := s.stock(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(f.data) }()
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
	s.add("start", fmt.Sprintf("exec to ready, %d frames stored, after kill -9, ms", f.frames), spread("%.0f", killed), verdict("<= 500", middle(killed) <= 500))
	s.add("start", "the same after an orderly end, ms", spread("%.0f", ended), verdict("<= 500", middle(ended) <= 500))
	return nil
}

// firstReady connects a device as soon as it can, with the cursor of one that has nothing yet, and
// sees to it afterwards that all that was stored for it comes.
func (p *process) firstReady(ctx context.Context, f *stocked) (time.Duration, error) {
	if err := p.await(ctx); err != nil {
		return 0, err
	}
	d, err := enter(ctx, p.addr, deviceID(storedDevice), appToken, &frame.Cursor{Epoch: f.epoch})
	if err != nil {
		return 0, err
	}
	took := time.Since(p.began)
	defer d.close()
	const all = storedEach + waitingEach
	if d.ready.from != 1 || d.ready.to != all {
		return 0, fmt.Errorf("frames %d to %d wait for the device: what was stored is gone", d.ready.from, d.ready.to)
	}
	_ = d.nc.SetReadDeadline(time.Now().Add(time.Minute))
	for got := int64(0); got < all; {
		b, err := d.next()
		if err != nil {
			return 0, fmt.Errorf("frame %d of %d: %w", got+1, all, err)
		}
		if kind(b) != "message" {
			continue
		}
		if got++; number(b, `"seq":`) != got || !has(b, `"text":"`+storedText+`"`) {
			return 0, fmt.Errorf("frame %d is %s", got, b)
		}
	}
	return took, nil
}
