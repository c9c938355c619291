package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
)

// pings counts the server's pings to all devices.
var pings atomic.Int64

// device is one phone. Its fields belong to its reading goroutine once that runs.
type device struct {
	*socket
	id    string
	i     int
	ready span
	on    func(d *device, kind string, p []byte) // nil: frames are thrown away
	fleet *fleet
}

// span is what ready says of the outbox.
type span struct {
	epoch    string
	from, to int64
}

// fleet is a number of devices that are opened and closed together.
type fleet struct {
	list    []*device
	closing atomic.Bool
	readers sync.WaitGroup
	lost    chan error // connections that ended by themselves; the first counts
}

func hello(id, token string, resume *frame.Cursor, accept []string) []byte {
	return frame.EncodeUp(&frame.Hello{Token: token, Device: frame.Device{ID: id, Name: "Bench", Platform: "bench", App: "bench/1"}, Accept: accept, Resume: resume})
}

// enter dials and says hello, and returns when the server is ready.
func enter(ctx context.Context, addr, id, token string, resume *frame.Cursor, accept ...string) (*device, error) {
	return enterAs(ctx, nil, addr, id, token, resume, accept...)
}

func enterAs(ctx context.Context, speech *dialect, addr, id, token string, resume *frame.Cursor, accept ...string) (*device, error) {
	k, err := dial(ctx, addr, "/ws", nil)
	if err != nil {
		return nil, err
	}
	k.speech = speech
	_ = k.nc.SetReadDeadline(time.Now().Add(60 * time.Second))
	k.send(hello(id, token, resume, accept))
	p, err := k.next()
	if err == nil && kind(p) != "ready" {
		err = errors.New(string(p))
	}
	if err != nil {
		k.close()
		return nil, fmt.Errorf("hello of %s: %w", id, err)
	}
	_ = k.nc.SetReadDeadline(time.Time{})
	d := &device{socket: k, id: id}
	if at := bytes.Index(p, []byte(`"resume":`)); at >= 0 {
		d.ready = span{epoch: text(p[at:], `"epoch":"`), from: number(p[at:], `"from":`), to: number(p[at:], `"to":`)}
	}
	return d, nil
}

// handshakes is how many connections are being opened at a time: enough to keep both cores busy, and less than the
// kernel's queue of the listener, which would cost whoever is dropped from it a second.
const handshakes = 64

// open connects devices first to first+n-1, in parallel. on may be nil.
func open(ctx context.Context, addr string, first, n int, on func(*device, string, []byte), accept ...string) (*fleet, error) {
	return openAs(ctx, nil, addr, first, n, on, accept...)
}

func openAs(ctx context.Context, speech *dialect, addr string, first, n int, on func(*device, string, []byte), accept ...string) (*fleet, error) {
	f := &fleet{list: make([]*device, n), lost: make(chan error, 1)}
	var next atomic.Int64
	var work sync.WaitGroup
	failed := make(chan error, handshakes)
	for range min(handshakes, n) {
		work.Go(func() {
			for ctx.Err() == nil && len(failed) == 0 {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				d, err := enterAs(ctx, speech, addr, deviceID(first+i), appToken, nil, accept...)
				if err != nil {
					failed <- err
					return
				}
				f.adopt(i, d, on)
			}
		})
	}
	work.Wait()
	select {
	case err := <-failed:
		f.close()
		return nil, err
	default:
	}
	if ctx.Err() != nil {
		f.close()
		return nil, ctx.Err()
	}
	return f, nil
}

func deviceID(i int) string { return "d" + strconv.Itoa(i) }

// adopt makes d the fleet's device i and begins to read from it.
func (f *fleet) adopt(i int, d *device, on func(*device, string, []byte)) {
	d.i, d.on, d.fleet = i, on, f
	f.list[i] = d
	f.readers.Go(d.read)
}

func (d *device) read() {
	for {
		p, err := d.next()
		if err != nil {
			if !d.fleet.closing.Load() {
				d.fleet.fail(fmt.Errorf("device %s: %w", d.id, err))
			}
			return
		}
		k := kind(p)
		if k == "error" {
			d.fleet.fail(fmt.Errorf("device %s was answered %s", d.id, p))
		}
		if d.on != nil {
			d.on(d, k, p)
		}
	}
}

func (f *fleet) fail(err error) {
	select {
	case f.lost <- err:
	default:
	}
}

// close ends all connections and waits for their readers.
func (f *fleet) close() {
	f.closing.Store(true)
	for _, d := range f.list {
		if d != nil {
			d.close()
		}
	}
	f.readers.Wait()
}

// wait returns when done is closed, or why it cannot be.
func (f *fleet) wait(ctx context.Context, done <-chan struct{}, what string) error {
	select {
	case <-done:
		return nil
	case err := <-f.lost:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", what, ctx.Err())
	}
}

// pause is time.Sleep that ends with the first trouble.
func (f *fleet) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case err := <-f.lost:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The frames are not decoded, which would cost more than the server's work for them: quotes inside a JSON string are
// escaped, so a member can be found by its text.

// kind is the type of a frame: the server writes it first.
func kind(p []byte) string {
	for _, k := range kinds {
		if len(p) > 6+len(k) && string(p[6:6+len(k)]) == k && p[6+len(k)] == '"' {
			return k
		}
	}
	return text(p, `"t":"`)
}

var kinds = []string{"message", "accepted", "typing", "avatar", "delivered", "ready", "error"}

func text(p []byte, name string) string {
	at := bytes.Index(p, []byte(name))
	if at < 0 {
		return ""
	}
	p = p[at+len(name):]
	if end := bytes.IndexByte(p, '"'); end >= 0 {
		return string(p[:end])
	}
	return ""
}

func number(p []byte, name string) int64 {
	at := bytes.Index(p, []byte(name))
	if at < 0 {
		return 0
	}
	n := int64(0)
	for _, c := range p[at+len(name):] {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

func has(p []byte, part string) bool { return bytes.Contains(p, []byte(part)) }
