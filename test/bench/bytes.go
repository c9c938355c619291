package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
)

// bytesText is how long the reply is, in bytes.
const bytesText = 20 << 10

// wireBytes counts what a device is sent while a reply of 20 KiB is streamed to it, from its own message to the end of the
// turn: every byte on its TCP connection, so frames, their headers, receipts and indicators. The price of a step does not depend on its
// text, so it is streamed as a fast model speaks and as one of half that speed.
func wireBytes(ctx context.Context, s *suite) error {
	for _, perSecond := range []int{2048, 1024, 512} {
		step := perSecond * int(draftEvery) / int(time.Second)
		sums, err := countOnce(ctx, s, step)
		if err != nil {
			return err
		}
		tail, delta, plain := sums[0], sums[1], sums[2]
		ratio := func(n int64) float64 { return float64(n) / bytesText }
		name := fmt.Sprintf("20 KiB reply, %d steps of %d bytes (%d B/s): ", bytesText/step, step, perSecond)
		goal := ""
		if perSecond == 1024 {
			goal = verdict("<= 1.3", ratio(tail.all) <= 1.3)
		}
		s.add("bytes", name+"with delta and tail, bytes; times the text", fmt.Sprintf("%d; %.2f", tail.all, ratio(tail.all)), goal)
		s.add("bytes", name+"of these before the final, with it and after", fmt.Sprintf("%d, %d", tail.before, tail.all-tail.before), "")
		s.add("bytes", name+"with delta alone, bytes; times the text", fmt.Sprintf("%d; %.2f", delta.all, ratio(delta.all)), "")
		s.add("bytes", name+"without delta, bytes; times the text", fmt.Sprintf("%d; %.1f", plain.all, ratio(plain.all)), "")
	}
	return nil
}

// counted is what a device was sent: all, and up to the final.
type counted struct{ all, before int64 }

// bytesAsked is what the devices that are sent the same ask for.
var bytesAsked = [3][]string{{frame.AcceptDelta, frame.AcceptTail}, {frame.AcceptDelta}, nil}

// countOnce streams the same reply at the same time to a device for each of bytesAsked.
func countOnce(ctx context.Context, s *suite, step int) (sums [len(bytesAsked)]counted, err error) {
	p, err := s.serve(ctx, "bytes")
	if err != nil {
		return sums, err
	}
	defer p.drop()
	text := prose(bytesText)
	mids := make(chan [2]string, len(bytesAsked))
	g, err := dialGateway(ctx, p.addr, func(chat, mid, _ string) { mids <- [2]string{chat, mid} })
	if err != nil {
		return sums, err
	}
	defer g.end()
	var devices [len(bytesAsked)]*wiretap
	for i, accept := range bytesAsked {
		if devices[i], err = tap(ctx, p.addr, deviceID(i), text, accept...); err != nil {
			return sums, err
		}
		defer devices[i].close()
	}
	type turn struct{ to, about, mid string }
	var turns []turn
	for _, d := range devices {
		d.begin()
	}
	for range devices {
		select {
		case m := <-mids:
			turns = append(turns, turn{`,"chat_id":"` + m[0] + `"`, `,"metadata":{"user_id":"` + m[0] + `","reply_to_message_id":"` + m[1] + `"`, m[1]})
		case <-time.After(20 * time.Second):
			return sums, errors.New("a message does not come to the gateway")
		}
	}
	quoted := func(n int) string {
		b, _ := json.Marshal(text[:n]) // a string has no error
		return string(b)
	}
	for n, k := step, 0; n <= len(text); n, k = n+step, k+1 {
		for i, t := range turns {
			if k%8 == 0 {
				g.op(`"typing"` + t.to + t.about + `}`)
			}
			g.op(`"draft"` + t.to + `,"draft_id":` + strconv.Itoa(1000+i) + `,"content":` + quoted(n) + `,"final":false` + t.about + `}`)
		}
		g.flush()
		select {
		case <-time.After(draftEvery):
		case <-ctx.Done():
			return sums, ctx.Err()
		}
	}
	for _, t := range turns {
		g.op(`"react"` + t.to + `,"message_id":"` + t.mid + `","emoji":"👀","remove":false` + t.about + `}`)
		g.op(`"send"` + t.to + `,"content":` + quoted(len(text)) + `,"reply_to":"` + t.mid + `"` + t.about + `,"notify":true}`)
		g.op(`"react"` + t.to + `,"message_id":"` + t.mid + `","emoji":"👀","remove":true` + t.about + `}`)
		g.op(`"react"` + t.to + `,"message_id":"` + t.mid + `","emoji":"✅","remove":false` + t.about + `}`)
	}
	g.flush()
	for i, d := range devices {
		select {
		case <-d.over:
		case <-time.After(20 * time.Second):
			return sums, errors.New("a reply has no end")
		}
		if d.err != nil {
			return sums, d.err
		}
		sums[i] = d.sum
	}
	return sums, g.settled(ctx)
}

// prose is text of n bytes with the line breaks and quotation marks that a frame has to escape.
func prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Sentence %d says \"what there is to say\" in words as long as words are, and ends.", i)
		if i%3 == 2 {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()[:n-1] + "."
}

// wiretap is a device whose connection goes through a meter.
type wiretap struct {
	*device
	meter *meter
	text  string // what it is to be told
	from  int64
	sum   counted
	err   error
	over  chan struct{} // then sum and err may be read
}

func tap(ctx context.Context, addr, id, text string, accept ...string) (*wiretap, error) {
	m, err := startMeter(addr)
	if err != nil {
		return nil, err
	}
	d, err := enter(ctx, m.addr, id, appToken, nil, accept...)
	if err != nil {
		m.close()
		return nil, err
	}
	return &wiretap{device: d, meter: m, text: text, over: make(chan struct{})}, nil
}

// begin sends the message, and reads to the end of its turn.
func (w *wiretap) begin() {
	w.from = w.meter.bytes.Load()
	w.send([]byte(`{"t":"text","id":"m","text":"tell me something long"}`))
	go func() {
		defer close(w.over)
		w.err = w.follow()
	}()
}

// follow puts the reply together as a client does, so that what was counted is known to be enough.
func (w *wiretap) follow() error {
	shown, steps, final := "", 0, false
	for {
		b, err := w.next()
		if err != nil {
			return err
		}
		f, err := frame.DecodeDown(b)
		if err != nil {
			return err
		}
		switch f := f.(type) {
		case *frame.Message:
			switch {
			case f.Append != nil && (f.At == len(shown) || f.At == 0 && !f.Final): // the text is ASCII
				shown += *f.Append
			case f.Append == nil:
				shown = f.Text
			default:
				return fmt.Errorf("a step goes on at %d of a text of %d", f.At, len(shown))
			}
			if f.Final {
				final = true
				if shown != w.text {
					return fmt.Errorf("after %d steps the reply is %d bytes that are not those that were sent", steps, len(shown))
				}
			} else {
				steps++
				w.sum.before = w.meter.bytes.Load() - w.from
			}
		case *frame.Typing:
			if f.Stop && final {
				w.sum.all = w.meter.bytes.Load() - w.from
				return nil
			}
		}
	}
}

func (w *wiretap) close() {
	w.device.close()
	w.meter.close()
}

// meter passes one TCP connection on and counts what comes down on it.
type meter struct {
	addr  string
	bytes atomic.Int64
	l     net.Listener
	work  sync.WaitGroup
}

func startMeter(to string) (*meter, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &meter{addr: l.Addr().String(), l: l}
	m.work.Go(func() {
		up, err := l.Accept()
		if err != nil {
			return
		}
		defer up.Close()
		down, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer down.Close()
		m.work.Go(func() {
			_, _ = io.Copy(down, up) // to the end of the device
			_ = down.Close()
		})
		buf := make([]byte, 32<<10)
		for {
			n, err := down.Read(buf)
			m.bytes.Add(int64(n))
			if n > 0 {
				if _, err := up.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	return m, nil
}

// close ends the meter of a device that is closed.
func (m *meter) close() {
	_ = m.l.Close()
	m.work.Wait()
}
