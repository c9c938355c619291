package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
)

// paced is a number of conversations in which replies are streamed as slowly as a stock gateway streams them: far below the
// eight steps a second that reach a device, so the server holds none back on purpose. Each op is written by itself, at the moment
// of which it is told, and each device reads in a goroutine of its own: the load is light, so that its clocks are right.
type paced struct {
	steps int           // of a reply
	every time.Duration // between two ops; stock: a quarter of a second
	rest  time.Duration // from a message to the first step, when a model thinks

	g      *gateway
	fleet  *fleet
	list   []*conversation
	byChat map[string]*conversation
	texts  []string // quoted; the last one is the final

	measure, ending atomic.Bool
	left            atomic.Int64
	done            chan struct{}
	players         sync.WaitGroup
	stop            context.CancelFunc
}

// conversation is one of them.
type conversation struct {
	chat    string
	turns   chan string    // message ids at the gateway
	written []atomic.Int64 // ns: when the gateway wrote each step

	// Of the device's reader.
	texts, finals, steps int
	over                 bool

	mu     sync.Mutex
	delays delays
}

// delays are from the gateway's write of an op to the device's frame.
type delays struct{ first, later, final []time.Duration }

// openPaced connects a gateway and n devices, and lets them talk until finish.
func openPaced(ctx context.Context, addr string, n, steps int, every, rest time.Duration) (*paced, error) {
	x := &paced{steps: steps, every: every, rest: rest, byChat: map[string]*conversation{}, done: make(chan struct{})}
	var words strings.Builder
	for i := range steps {
		fmt.Fprintf(&words, " some words of it, and what they mean #%d", i)
		x.texts = append(x.texts, `"`+words.String()[1:]+`"`)
	}
	x.texts = append(x.texts, `"`+words.String()[1:]+`. #`+strconv.Itoa(steps)+`"`)
	for i := range n {
		c := &conversation{chat: deviceID(i), turns: make(chan string, 4), written: make([]atomic.Int64, steps+1)}
		x.list = append(x.list, c)
		x.byChat[c.chat] = c
	}
	x.left.Store(int64(n))
	var err error
	if x.g, err = dialGateway(ctx, addr, x.inbound); err != nil {
		return nil, err
	}
	if x.fleet, err = open(ctx, addr, 0, n, x.down, frame.AcceptDelta); err != nil {
		x.g.end()
		return nil, err
	}
	playing, stop := context.WithCancel(ctx)
	x.stop = stop
	for _, c := range x.list {
		x.players.Go(func() { x.play(playing, c) })
	}
	return x, nil
}

// begin starts all conversations, spread over the length of a turn.
func (x *paced) begin(ctx context.Context) error {
	turn := x.rest + time.Duration(x.steps)*x.every
	for _, d := range x.fleet.list {
		d.send([]byte(`{"t":"ping","id":"begin"}`)) // its reader begins, so that only that touches the conversation
		if err := x.fleet.pause(ctx, turn/time.Duration(len(x.list))); err != nil {
			return err
		}
	}
	return nil
}

// watch notes delays for a while and returns them.
func (x *paced) watch(ctx context.Context, d time.Duration) (all delays, err error) {
	x.take()
	x.measure.Store(true)
	err = x.fleet.pause(ctx, d)
	x.measure.Store(false)
	return x.take(), err
}

func (x *paced) take() (all delays) {
	for _, c := range x.list {
		c.mu.Lock()
		all.first, all.later, all.final = append(all.first, c.delays.first...), append(all.later, c.delays.later...), append(all.final, c.delays.final...)
		c.delays = delays{}
		c.mu.Unlock()
	}
	return all
}

// finish lets each turn end and sees to it that every message has its reply.
func (x *paced) finish(ctx context.Context) error {
	x.ending.Store(true)
	if err := x.fleet.wait(ctx, x.done, "turns do not end"); err != nil {
		return err
	}
	if err := x.g.settled(ctx); err != nil {
		return err
	}
	for _, c := range x.list {
		if c.texts != c.finals || c.texts == 0 || c.steps == 0 {
			return fmt.Errorf("%s sent %d texts and got %d replies and %d steps", c.chat, c.texts, c.finals, c.steps)
		}
	}
	return nil
}

func (x *paced) close() {
	x.stop()
	x.players.Wait()
	x.fleet.close()
	x.g.end()
}

func (x *paced) inbound(chat, mid, _ string) {
	if c := x.byChat[chat]; c != nil {
		select {
		case c.turns <- mid:
		default:
			x.fleet.fail(fmt.Errorf("%s has more turns at once than messages", chat))
		}
	}
}

// play is the gateway's side of a conversation (doc/hermes/relay.md §4).
func (x *paced) play(ctx context.Context, c *conversation) {
	sleep := func(d time.Duration) bool {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(d):
			return true
		}
	}
	for draft := 1000; ; draft++ {
		var mid string
		select {
		case <-ctx.Done():
			return
		case mid = <-c.turns:
		}
		about := `,"metadata":{"user_id":"` + c.chat + `","reply_to_message_id":"` + mid + `"`
		to := `,"chat_id":"` + c.chat + `"`
		react := func(emoji string, remove bool) {
			x.g.op(`"react"` + to + `,"message_id":"` + mid + `","emoji":"` + emoji + `","remove":` + strconv.FormatBool(remove) + about + `}`)
		}
		react("👀", false)
		x.g.op(`"typing"` + to + about + `}`)
		x.g.flush()
		if !sleep(x.rest) {
			return
		}
		typed := time.Now()
		for step := range x.steps {
			op := `"draft"` + to + `,"draft_id":` + strconv.Itoa(draft) + `,"content":` + x.texts[step] + `,"final":false` + about + `}`
			c.written[step].Store(time.Now().UnixNano())
			x.g.op(op)
			x.g.flush()
			if time.Since(typed) > 2*time.Second {
				typed = time.Now()
				x.g.op(`"typing"` + to + about + `}`)
				x.g.flush()
			}
			if !sleep(x.every) {
				return
			}
		}
		op := `"send"` + to + `,"content":` + x.texts[x.steps] + `,"reply_to":"` + mid + `"` + about + `,"notify":true}`
		c.written[x.steps].Store(time.Now().UnixNano())
		x.g.op(op)
		x.g.flush()
		react("👀", true)
		react("✅", false)
		x.g.flush()
	}
}

// down is a frame at a device.
func (x *paced) down(d *device, kind string, p []byte) {
	now := time.Now().UnixNano()
	c := x.list[d.i]
	switch kind {
	case "message":
		step := lastStep(p)
		final := has(p, `"final":true`)
		if step < 0 || step > x.steps || final != (step == x.steps) {
			d.fleet.fail(fmt.Errorf("%s was sent %s", c.chat, p))
			return
		}
		if final {
			c.finals++
			if !has(p, x.texts[x.steps]) || !has(p, `"reply_to":"t`+strconv.Itoa(c.texts)+`"`) || !has(p, `"seq":`) {
				d.fleet.fail(fmt.Errorf("the reply to t%d of %s is %s", c.texts, c.chat, p))
			}
		} else {
			c.steps++
		}
		if x.measure.Load() {
			c.note(step, x.steps, time.Duration(now-c.written[step].Load()))
		}
	case "typing":
		if !has(p, `"stop":true`) || c.finals < c.texts {
			return
		}
		if !x.ending.Load() {
			c.say(d)
		} else if !c.over {
			c.over = true
			if x.left.Add(-1) == 0 {
				close(x.done)
			}
		}
	case "pong":
		c.say(d)
	}
}

func (c *conversation) say(d *device) {
	c.texts++
	d.send([]byte(`{"t":"text","id":"t` + strconv.Itoa(c.texts) + `","text":"tell me something that takes a while"}`))
}

func (c *conversation) note(step, final int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch step {
	case 0:
		c.delays.first = append(c.delays.first, d)
	case final:
		c.delays.final = append(c.delays.final, d)
	default:
		c.delays.later = append(c.delays.later, d)
	}
}

// lastStep is the number of the newest step in a frame's text, which stands behind the last #.
func lastStep(p []byte) int {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] == '#' {
			return int(number(p[i:], "#"))
		}
	}
	return -1
}

var errNone = errors.New("nothing was measured")
