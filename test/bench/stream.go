package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A reply is streamed as a stock gateway does it (doc/hermes/relay.md §4): marks and typing, drafts
// with the whole text so far, a final send, marks.
const (
	replySteps  = 40
	stepText    = "some words of it " // one step adds this
	streamFor   = 8 * time.Second
	gatewayTick = 5 * time.Millisecond
)

// streamMode is how fast how many devices are streamed to.
type streamMode struct {
	name    string
	devices int
	every   time.Duration // between two ops of a device
	whole   bool          // slow enough to show every step
}

// The server shows eight steps a second to a device. In the first mode it must leave most ops out, in the second hardly any.
func (s *suite) streamModes() []streamMode {
	return []streamMode{
		{"100 devices, 100 ops/s each", 100, 10 * time.Millisecond, false},
		{fmt.Sprintf("%d devices, 7.7 ops/s each", s.streams), s.streams, 130 * time.Millisecond, true},
	}
}

// streams measures our server in both modes, and the yardsticks, which leave no op out, in the second.
func streams(ctx context.Context, s *suite) error {
	for i, mode := range s.streamModes() {
		contestants := s.contestants()
		if !mode.whole {
			contestants = contestants[:1]
		}
		in, out, size, perIn, perOut, p50, p99 := measured{}, measured{}, measured{}, measured{}, measured{}, measured{}, measured{}
		for range s.repeat {
			reply := 0 // the length of ours
			for _, v := range contestants {
				r, err := streamOnce(ctx, s, v, mode, "stream"+strconv.Itoa(i))
				if err != nil {
					return fmt.Errorf("%s: %s: %w", v.name, mode.name, err)
				}
				if v.ours() {
					reply = r.reply
				} else if r.reply != reply {
					return fmt.Errorf("%s: the first reply has %d bytes and ours %d: a yardstick must send the same frames", v.name, r.reply, reply)
				}
				in.add(v, r.in)
				out.add(v, r.out)
				size.add(v, r.size)
				perIn.add(v, r.perIn)
				perOut.add(v, r.perOut)
				p50.add(v, r.p50)
				p99.add(v, r.p99)
			}
		}
		for _, v := range contestants {
			of := func(figure string) string { return v.of(mode.name + ": " + figure) }
			s.add("stream", of("server CPU an op in, µs"), spread("%.1f", perIn[v]), "")
			s.add("stream", of("server CPU a frame out, µs"), spread("%.1f", perOut[v]), "")
			s.add("stream", of("ops in, frames out a second"), spread("%.0f", in[v])+", "+spread("%.0f", out[v]), "")
			s.add("stream", of("bytes a frame out"), spread("%.0f", size[v]), "")
			if mode.whole {
				s.add("stream", of("op to frame, p50 ms"), spread("%.1f", p50[v]), "")
				s.add("stream", of("op to frame, p99 ms"), spread("%.1f", p99[v]), "")
			}
		}
		s.compare("stream", "server CPU a frame out", perOut, perOut.bare(), 2)
		s.compare("stream", "server CPU a frame out", perOut, perOut.python(), 0.5)
		s.compare("stream", "server CPU a frame out", perOut, perOut.uvloop(), 0)
	}
	return nil
}

type streamed struct {
	in, out, size, perIn, perOut, p50, p99 float64
	reply                                  int // length of the first one of the first device
}

// talk is one conversation: what the gateway says in it, and what the device has seen.
type talk struct {
	chat string
	sent atomic.Int64 // ns, the newest step

	mu   sync.Mutex
	mid  string // of the turn that runs
	step int    // the next one
	due  time.Time
	draw int // draft id

	// Of the device's reader.
	texts, finals int
	reply         int // length of the first final
	steps         int
	over          bool // its last turn is
	delays        []time.Duration
}

type studio struct {
	mode    streamMode
	g       *gateway
	talks   []*talk
	byChat  map[string]*talk
	steps   [replySteps + 1]string // quoted texts
	frames  atomic.Int64           // message frames at devices
	bytes   atomic.Int64           // of them
	measure atomic.Bool
	ending  atomic.Bool
	left    atomic.Int64
	done    chan struct{}
}

func streamOnce(ctx context.Context, s *suite, v *contestant, mode streamMode, name string) (r streamed, err error) {
	p, err := s.begin(ctx, v, name)
	if err != nil {
		return r, err
	}
	defer p.drop()
	x := &studio{mode: mode, byChat: map[string]*talk{}, done: make(chan struct{})}
	for i := range mode.devices {
		t := &talk{chat: deviceID(i)}
		x.talks = append(x.talks, t)
		x.byChat[t.chat] = t
	}
	for i := range x.steps {
		x.steps[i] = `"` + strings.Repeat(stepText, i+1) + `."`
	}
	x.left.Store(int64(mode.devices))
	if x.g, err = dialGateway(ctx, p.addr, x.inbound); err != nil {
		return r, err
	}
	defer x.g.end()
	f, err := openAs(ctx, v.speech, p.addr, 0, mode.devices, x.down)
	if err != nil {
		return r, err
	}
	defer f.close()

	ticking, stopTicking := context.WithCancel(ctx)
	var clock sync.WaitGroup
	clock.Go(func() { x.run(ticking) })
	defer clock.Wait()
	defer stopTicking()
	// Turns begin spread over the length of one, as people do.
	turn := time.Duration(replySteps) * mode.every
	for _, d := range f.list {
		d.send([]byte(`{"t":"ping","id":"begin"}`)) // the reader begins, so that only it touches its talk
		if err := f.pause(ctx, turn/time.Duration(mode.devices)); err != nil {
			return r, err
		}
	}
	if err := f.pause(ctx, time.Second); err != nil {
		return r, err
	}

	stop := s.capture(ctx, p, name, streamFor)
	begin, cpu, ops, frames, bytes := time.Now(), p.cpu(), x.g.ops.Load(), x.frames.Load(), x.bytes.Load()
	x.measure.Store(true)
	if err := f.pause(ctx, streamFor); err != nil {
		return r, err
	}
	x.measure.Store(false)
	took, used := time.Since(begin).Seconds(), (p.cpu()-cpu).Seconds()*1e6
	in, out := float64(x.g.ops.Load()-ops), float64(x.frames.Load()-frames)
	size := float64(x.bytes.Load()-bytes) / out
	stop()

	x.ending.Store(true)
	limited, cancel := context.WithTimeout(ctx, turn+30*time.Second)
	defer cancel()
	if err := f.wait(limited, x.done, "turns do not end"); err != nil {
		return r, err
	}
	stopTicking()
	clock.Wait()
	if err := x.g.settled(limited); err != nil {
		return r, err
	}
	var delays []time.Duration
	for _, t := range x.talks {
		if t.texts != t.finals || t.texts == 0 || t.steps == 0 {
			return r, fmt.Errorf("%s sent %d texts and got %d replies and %d steps", t.chat, t.texts, t.finals, t.steps)
		}
		if !v.ours() && t.steps != t.texts*replySteps { // ours shows eight a second at most
			return r, fmt.Errorf("%s got %d of %d steps", t.chat, t.steps, t.texts*replySteps)
		}
		delays = append(delays, t.delays...)
	}
	return streamed{in / took, out / took, size, used / in, used / out, ms(quantile(delays, 0.5)), ms(quantile(delays, 0.99)), x.talks[0].reply}, nil
}

// inbound is the gateway getting a message: a turn begins.
func (x *studio) inbound(chat, mid, _ string) {
	t := x.byChat[chat]
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mid, t.step, t.due = mid, 0, time.Now()
	t.draw++
}

// run sends what is due, as the tasks of a gateway do.
func (x *studio) run(ctx context.Context) {
	tick := time.NewTicker(gatewayTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		for _, t := range x.talks {
			x.act(t, now)
		}
		x.g.flush()
	}
}

func (x *studio) act(t *talk, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.mid != "" && !t.due.After(now) {
		about := `,"metadata":{"user_id":"` + t.chat + `","reply_to_message_id":"` + t.mid + `"`
		to := `,"chat_id":"` + t.chat + `"`
		react := func(emoji string, remove bool) {
			x.g.op(`"react"` + to + `,"message_id":"` + t.mid + `","emoji":"` + emoji + `","remove":` + strconv.FormatBool(remove) + about + `}`)
		}
		typing := max(1, int(2*time.Second/x.mode.every))
		if t.step == 0 {
			react("👀", false)
		}
		if t.step%typing == 0 {
			x.g.op(`"typing"` + to + about + `}`)
		}
		if t.step < replySteps {
			t.sent.Store(now.UnixNano())
			x.g.op(`"draft"` + to + `,"draft_id":` + strconv.Itoa(1000+t.draw) + `,"content":` + x.steps[t.step] + `,"final":false` + about + `}`)
			t.step++
			t.due = t.due.Add(x.mode.every)
			continue
		}
		x.g.op(`"send"` + to + `,"content":` + x.steps[replySteps] + `,"reply_to":"` + t.mid + `"` + about + `,"notify":true}`)
		react("👀", true)
		react("✅", false)
		t.mid = ""
	}
}

// down is a frame at a device.
func (x *studio) down(d *device, kind string, p []byte) {
	t := x.talks[d.i]
	switch kind {
	case "message":
		x.frames.Add(1)
		x.bytes.Add(int64(len(p)))
		if !has(p, `"final":true`) {
			t.steps++
			if x.measure.Load() {
				t.delays = append(t.delays, time.Duration(time.Now().UnixNano()-t.sent.Load()))
			}
			return
		}
		if t.finals++; t.finals == 1 {
			t.reply = len(p)
		}
		if !has(p, x.steps[replySteps]) || !has(p, `"reply_to":"t`+strconv.Itoa(t.texts)+`"`) || !has(p, `"seq":`) {
			d.fleet.fail(fmt.Errorf("the reply to t%d of %s is %s", t.texts, t.chat, p))
		}
	case "typing":
		if !has(p, `"stop":true`) || t.finals < t.texts {
			return
		}
		if x.ending.Load() {
			if !t.over {
				t.over = true
				if x.left.Add(-1) == 0 {
					close(x.done)
				}
			}
			return
		}
		x.say(d, t)
	case "pong":
		x.say(d, t)
	}
}

func (x *studio) say(d *device, t *talk) {
	t.texts++
	d.send([]byte(`{"t":"text","id":"t` + strconv.Itoa(t.texts) + `","text":"tell me something that takes a while"}`))
}
