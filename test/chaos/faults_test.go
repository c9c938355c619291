package chaos

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
)

// step is one thing that goes wrong. Everything in it follows from the seed.
type step struct {
	fault *fault
	phone int
	gap   time.Duration // before it
	size  float64       // from 0 to 1: how bad it is
}

// fault is a kind of thing that can go wrong.
type fault struct {
	name   string
	weight int
	server bool // it takes the server as a whole: one of these at a time
	do     func(w *world, p *phone, size float64)
}

// between returns what lies at size between two durations.
func between(low, high time.Duration, size float64) time.Duration {
	return low + time.Duration(size*float64(high-low))
}

var faults = []*fault{
	{"the phone's connections are reset", 4, false, func(_ *world, p *phone, _ float64) { p.net.each((*wire).reset) }},
	{"half open: packets vanish, no FIN", 3, false, func(_ *world, p *phone, _ float64) { p.net.set(func(c *wire) { c.swallow = true }) }},
	{"cut in the middle of a frame", 4, false, func(_ *world, p *phone, size float64) { p.net.set(func(c *wire) { c.left = 1 + int(size*20_000) }) }},
	{"each packet late", 3, false, func(w *world, p *phone, size float64) {
		p.net.set(func(c *wire) { c.delay = between(20*time.Millisecond, 300*time.Millisecond, size) })
		w.pause(between(300*time.Millisecond, 2*time.Second, size))
		p.net.set(func(c *wire) { c.delay = 0 })
	}},
	{"trickle: 64 bytes at a time", 3, false, func(w *world, p *phone, size float64) {
		p.net.set(func(c *wire) { c.trickle = true })
		w.pause(between(300*time.Millisecond, 2*time.Second, size))
		p.net.set(func(c *wire) { c.trickle = false })
	}},
	{"an old connection speaks after the new one", 3, false, func(w *world, p *phone, size float64) {
		p.net.set(func(c *wire) { c.late = true })
		w.pause(between(30*time.Millisecond, 300*time.Millisecond, size))
		p.net.set(func(c *wire) {
			if c.late {
				_ = c.phone.Close()
			}
		})
	}},
	{"a second connection of the same device", 1, false, func(w *world, p *phone, size float64) { w.twin(p, between(0, 200*time.Millisecond, size)) }},
	{"the app stands still and hears nothing", 2, false, func(w *world, p *phone, size float64) {
		if p.own != nil {
			p.own.stand(true)
			defer p.own.stand(false)
		} else {
			p.asleep.Lock()
			defer p.asleep.Unlock()
		}
		p.net.set(func(c *wire) { c.swallow = true })
		w.pause(between(200*time.Millisecond, 3*time.Second, size))
	}},
	{"kill -9 of a phone's process", 3, false, func(w *world, p *phone, _ float64) { w.ownProcess(p).kill() }},
	{"a phone's clock is set", 2, false, func(w *world, p *phone, size float64) { w.ownProcess(p).controls.Step(jump(size)) }},
	{"the agent's link is cut", 3, false, func(w *world, p *phone, _ float64) { w.gwOf(p.chat).Drop() }},
	{"kill -9 of the server", 3, true, func(w *world, _ *phone, _ float64) {
		w.srv.signal(syscall.SIGKILL, restartWithin)
		w.srv.start()
	}},
	{"SIGTERM and a new start", 1, true, func(w *world, _ *phone, _ float64) {
		w.srv.signal(syscall.SIGTERM, restartWithin)
		w.srv.start()
	}},
	{"SIGSTOP of the server", 1, true, func(w *world, _ *phone, size float64) {
		longest := 2 * time.Second
		if w.long {
			longest = 5 * time.Second
			if size > 0.75 {
				longest = 30 * time.Second // in full
				size = 1
			}
		}
		w.srv.freeze(between(200*time.Millisecond, longest, size))
	}},
	{"the server's clock is set", 2, true, func(w *world, _ *phone, size float64) { w.setClock(jump(size), size) }},
	{"the disk is slow", 2, true, func(w *world, _ *phone, size float64) {
		longest := 3 * time.Second
		if w.long {
			longest = 10 * time.Second
		}
		w.slowDisk(between(200*time.Millisecond, longest, size))
	}},
	{"the disk is full", 1, true, func(w *world, _ *phone, size float64) {
		w.srv.filled.Store(true)
		if err := fillDisk(w.srv.data(), int64(size*(64<<10))); err != nil {
			w.t.Errorf("fill the disk: %v", err)
		}
		w.pause(between(200*time.Millisecond, 3*time.Second, size))
		if err := freeDisk(w.srv.data()); err != nil {
			w.t.Errorf("free the disk: %v", err)
		}
	}},
}

// jump is how far a clock is set: minutes or hours, forward or back.
func jump(size float64) time.Duration {
	d := between(time.Minute, 9*time.Hour, math.Abs(2*size-1))
	if size < 0.5 {
		d = -d
	}
	return d
}

// setClock sets the server's clock. Half of the times the gateway is on the same machine, and its clock is set with it. Else its
// tokens hold no more, and the server's clock is set right after a while.
func (w *world) setClock(d time.Duration, size float64) {
	w.clockSet.Store(true)
	if int(size*1000)%2 == 0 {
		w.srv.controls.Step(d)
		w.clock.Add(int64(d))
		return
	}
	w.srv.controls.Step(d)
	w.pause(between(200*time.Millisecond, 3*time.Second, size))
	w.srv.controls.Step(-d)
}

// ownProcess returns one of the phones that are processes.
func (w *world) ownProcess(p *phone) *process {
	n := slices.Index(w.phones, p)
	return w.phones[phones-ownProcesses+n%ownProcesses].own
}

// pause waits, less long where the load has ended.
func (w *world) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-w.over:
	}
}

// twin connects once more as a phone, takes what comes without a word, and goes.
func (w *world) twin(p *phone, stay time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws://"+w.srv.addr()+"/ws", nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	if err != nil {
		return // the server is away
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(-1)
	if conn.Write(ctx, websocket.MessageText, frame.EncodeUp(&frame.Hello{Token: appToken, Device: frame.Device{ID: p.id}, User: frame.User{ID: p.user}})) != nil {
		return
	}
	if _, _, err := conn.Read(ctx); err == nil {
		w.pause(stay)
	}
}

// plan draws one step after the other. At first each kind comes once, in a random order, so that a short run has them all.
func plan(rng *rand.Rand, usable []*fault, phones int) func() step {
	first := rng.Perm(len(usable))
	total := 0
	for _, f := range usable {
		total += f.weight
	}
	return func() step {
		var f *fault
		if len(first) > 0 {
			f, first = usable[first[0]], first[1:]
		} else {
			n := rng.IntN(total)
			for _, f = range usable {
				if n -= f.weight; n < 0 {
					break
				}
			}
		}
		return step{f, rng.IntN(phones), between(20*time.Millisecond, 500*time.Millisecond, rng.Float64()), rng.Float64()}
	}
}

// twinsAMinute is how often a server lets connections of one device replace each other before it makes them wait (§10).
const twinsAMinute = 3

// wreak does one step after the other until enough is true. It returns how often each kind was done.
func (w *world) wreak(next func() step, enough func() bool) map[*fault]int {
	done := map[*fault]int{}
	twins := map[int][]time.Time{}
	free := make(chan struct{}, 1) // a slot for faults of the server as a whole
	for !enough() {
		s := next()
		if w.long { // time for work to be done in between, too
			s.gap *= 4
		}
		w.pause(s.gap)
		p := w.phones[s.phone]
		if s.fault.name == "a second connection of the same device" {
			recent := twins[s.phone]
			for len(recent) > 0 && time.Since(recent[0]) > time.Minute {
				recent = recent[1:]
			}
			if len(recent) >= twinsAMinute {
				continue
			}
			twins[s.phone] = append(recent, time.Now())
		}
		if s.fault.server {
			free <- struct{}{}
		}
		done[s.fault]++
		w.note(fmt.Sprintf("%s (%s, %.2f)", s.fault.name, p.id, s.size))
		w.wrong.Go(func() {
			s.fault.do(w, p, s.size)
			if s.fault.server {
				<-free
			}
		})
	}
	close(w.over)
	w.wrong.Wait()
	return done
}
