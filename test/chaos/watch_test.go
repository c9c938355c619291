package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// watch asks the server again and again whether it is there, as a device of its own, until done is closed. It connects before
// it calls begin, and returns the longest time until an answer.
func (w *world) watch(begin func(), done <-chan struct{}) (longest time.Duration, answers int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleWithin)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws://"+w.srv.addr()+"/ws", nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	read := func(until func(frame.Down) bool) error {
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				return err
			}
			if f, err := frame.DecodeDown(b); err == nil && until(f) {
				return nil
			}
		}
	}
	hello := frame.EncodeUp(&frame.Hello{Token: appToken, Device: frame.Device{ID: "watcher"}})
	if err := conn.Write(ctx, websocket.MessageText, hello); err != nil {
		return 0, 0, err
	}
	if err := read(func(f frame.Down) bool { _, ok := f.(*frame.Ready); return ok }); err != nil {
		return 0, 0, err
	}
	begin()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		id, asked := fmt.Sprint(answers), time.Now()
		if err := conn.Write(ctx, websocket.MessageText, frame.EncodeUp(&frame.Ping{ID: id})); err != nil {
			return longest, answers, err
		}
		if err := read(func(f frame.Down) bool { p, ok := f.(*frame.Pong); return ok && p.ID == id }); err != nil {
			return longest, answers, err
		}
		longest = max(longest, time.Since(asked))
		answers++
		select {
		case <-tick.C:
		case <-done:
			return longest, answers, nil
		}
	}
}

// slowDisk makes the disk slow for a time, in which the server must go on answering whoever writes nothing.
func (w *world) slowDisk(d time.Duration) {
	done := make(chan struct{})
	end := func() {
		w.pause(d)
		w.srv.controls.SlowDown(0, 0)
		close(done)
	}
	began := false
	longest, answers, err := w.watch(func() {
		began = true
		w.srv.controls.SlowDown(slowFlush, slowestFlush)
		w.wrong.Go(end)
	}, done)
	if !began { // the server is not there: the disk is slow when it comes
		w.srv.controls.SlowDown(slowFlush, slowestFlush)
		end()
		return
	}
	if err != nil {
		w.t.Errorf("BROKEN: while its disk was slow the server ended the connection of a device that wrote nothing: %v (%d answers)\nseed %d", err, answers, w.seed)
	}
	<-done
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowPings += answers
	w.slowestPing = max(w.slowestPing, longest)
}

// How long a flush takes on a slow disk.
const (
	slowFlush    = 50 * time.Millisecond
	slowestFlush = 2 * time.Second
)
