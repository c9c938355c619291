package hub_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// A session is in memory while its device is connected or something is unfinished, and no longer.
func TestSessionsLeaveMemory(t *testing.T) {
	w := newWorld(t, nil)
	empty := func(what string) {
		t.Helper()
		until(t, "the sessions to leave memory after "+what, func() bool { return w.hub.Sessions() == 0 })
	}
	empty("nothing")
	c := w.connect("d")
	c.drop()
	empty("a connection")

	c = w.connect("d")
	c.text("m1", "one")
	h := w.take()
	c.drop()
	if w.hub.Sessions() != 1 {
		t.Error("a session left while its turn runs")
	}
	w.post("d", agent.Working{}, agent.Say{ID: "s1", Text: "step", N: h.N})
	w.reply(h, "1")
	empty("a turn that ended when the device was away")

	w.agent.online(false)
	c = w.connect("d")
	c.send(&frame.Text{ID: "m2", Text: "two"})
	find[*frame.Accepted](c, nil) // after what it was not sent yet
	c.drop()
	if w.hub.Sessions() != 1 {
		t.Error("a session left while a message waits")
	}
	w.agent.online(true)
	w.reply(w.take(), "2")
	empty("a message that waited")

	card := approvalCard("c1", 0)
	card.Life = 30 * time.Millisecond
	w.post("d", agent.Ask{Card: card})
	w.told().taken(nil)
	empty("a card that expired")

	if err := w.try("nobody", agent.Working{}); err == nil {
		t.Error("posted to nobody")
	}
	if _, err := w.hub.Owner().Deliver(ctx, "s", &frame.Deliver{To: "somebody", Text: "x"}); err != nil {
		t.Error(err)
	}
	w.say("d", "3")
	empty("what came for devices that are away")
}

// Hundreds of devices connect, chat, stream, ask, deliver to each other and drop at once, with an agent that answers from
// many goroutines: everybody gets their own answers, and in the end nothing is left.
func TestCrowd(t *testing.T) {
	devices, rounds := 200, 3
	if testing.Short() {
		devices = 60
	}
	w := newWorld(t, func(o *hub.Options) { o.IdleTimeout = patience })
	var agents sync.WaitGroup
	w.agent.mu.Lock()
	w.agent.onHand = func(h hand) bool {
		agents.Add(1)
		go func() {
			defer agents.Done()
			h.taken(nil)
			id := agent.NewID()
			for i := range 1 + rand.IntN(4) {
				w.hub.Post(h.Device, nil, agent.Say{ID: id, Text: h.Text[:min(len(h.Text), i*3+1)], N: h.N, ReplyTo: h.ID}, agent.Working{})
			}
			w.hub.Post(h.Device, nil, agent.Say{ID: id, Text: h.Text, Final: true, N: h.N, ReplyTo: h.ID}, agent.Done{N: h.N})
			w.hub.Changed()
		}()
		return true
	}
	w.agent.mu.Unlock()
	var wg sync.WaitGroup
	for d := range devices {
		wg.Go(func() {
			id := fmt.Sprint("dev", d)
			var cursor *frame.Cursor
			got, unsure := map[string]int{}, map[string]bool{} // unsure: sent and not acknowledged
			for round := range rounds {
				opts := []option{withUser(fmt.Sprint("user", d%7))}
				if d%2 == 0 {
					opts = append(opts, withDelta())
				}
				if cursor != nil {
					opts = append(opts, withResume(cursor.Epoch, cursor.Seq))
				}
				c := w.connect(id, opts...)
				if cursor == nil {
					cursor = &frame.Cursor{Epoch: c.Ready.Resume.Epoch}
				}
				for i := range 3 {
					unsure[fmt.Sprint(id, "-", round, "-", i)] = true
				}
				for key := range unsure {
					c.send(&frame.Text{ID: key, Text: "words of " + key})
					c.send(&frame.Ping{ID: key})
				}
				if d%10 == 0 {
					c.send(&frame.Deliver{To: fmt.Sprint("dev", (d+1)%devices), Text: "not allowed"})
				}
				last := round == rounds-1
				for len(got) < 3*(round+1) && (last || rand.IntN(12) != 0) { // drop out in the middle, but for the last time
					f, err := c.any()
					if err != nil {
						t.Errorf("device %s: %v (has %d)", id, err, len(got))
						return
					}
					if a, is := f.(*frame.Accepted); is {
						delete(unsure, a.ID)
					}
					if m, is := f.(*frame.Message); is && m.Final {
						if m.Seq <= cursor.Seq {
							t.Errorf("device %s got %s after %d", id, show(m), cursor.Seq)
						}
						cursor.Seq = m.Seq
						got[m.ReplyTo]++
						if m.Text != "words of "+m.ReplyTo {
							t.Errorf("device %s got %s", id, show(m))
						}
					}
				}
				_ = c.ws.CloseNow()
			}
			for key, n := range got {
				if n != 1 {
					t.Errorf("device %s got %d answers to %s", id, n, key)
				}
			}
		})
	}
	stop := make(chan struct{})
	var owner sync.WaitGroup
	owner.Go(func() { // what the owner does meanwhile
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := w.hub.Owner().Devices(ctx); err != nil {
				t.Error(err)
			}
			_ = w.hub.Owner().Rename(ctx, fmt.Sprint("dev", i%devices), "renamed")
			w.hub.Owner().TokensChanged(map[uint64]access.Token{hub.TokenSum(token): {}})
		}
	})
	wg.Wait()
	close(stop)
	owner.Wait()
	agents.Wait()
	until(t, "the sessions to leave memory", func() bool { return w.hub.Sessions() == 0 })
	until(t, "the connections to be gone", func() bool { return w.hub.Connections() == 0 })
}

// The server stops under load: every message that was accepted is handed to the next life or was answered.
func TestStopUnderLoad(t *testing.T) {
	w := newWorld(t, nil)
	const devices = 20
	accepted := make([]map[string]bool, devices)
	var started, wg sync.WaitGroup
	started.Add(devices)
	for d := range devices {
		accepted[d] = map[string]bool{}
		c := w.connect(fmt.Sprint("d", d))
		wg.Go(func() {
			go func() {
				for i := range 60 {
					f := &frame.Text{ID: fmt.Sprint("m", i), Text: fmt.Sprint("d", d, " m", i)}
					if c.write(f) != nil {
						return
					}
				}
			}()
			first := true
			for {
				f, err := c.any()
				if err != nil {
					return
				}
				if a, is := f.(*frame.Accepted); is {
					accepted[d][a.ID] = true
					if first {
						first = false
						started.Done()
					}
				}
			}
		})
	}
	started.Wait()
	w.close()
	wg.Wait()
	w.start(newAgent())
	total := 0
	for d := range devices {
		total += len(accepted[d])
	}
	handed := map[string]bool{}
	missing := func() int {
		n := 0
		for d := range devices {
			for id := range accepted[d] {
				if key := fmt.Sprint("d", d, " ", id); !handed[key] {
					n++
				}
			}
		}
		return n
	}
	for missing() > 0 {
		h := w.take()
		handed[h.Text] = true
		w.hub.Post(h.Device, nil, agent.Done{N: h.N})
	}
	t.Logf("%d accepted", total)
}
