package hub_test

import (
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// waker is an agent that is told of what waits.
type waker struct {
	agent.Agent
	waits chan string
}

func (w waker) Waits(device string) {
	select {
	case w.waits <- device:
	default:
	}
}

// An agent that can be woken hears of what waits while it is away, after a restart of the server,
// too, and of nothing while it is there.
func TestWaits(t *testing.T) {
	waits := make(chan string, 100)
	away := false
	w := newWorld(t, func(o *hub.Options) {
		if a, is := o.Agent.(*scripted); is && away {
			a.status.Online = false // before it runs
		}
		o.Agent = waker{o.Agent, waits}
	})
	c := w.connect("d")
	c.text("m0", "there")
	w.reply(w.take(), "yes")
	c.sync()
	if len(waits) > 0 {
		t.Errorf("an agent that is there hears of %s", <-waits)
	}
	w.agent.online(false)
	find[*frame.CapabilitiesChanged](c, nil)
	c.text("m1", "one")
	if d := receive(t, waits, "word of what waits"); d != "d" {
		t.Errorf("it hears of %s", d)
	}
	c.drop()
	w.close()
	for len(waits) > 0 {
		<-waits
	}
	away = true
	w.start(newAgent())
	if d := receive(t, waits, "word of what waits since before the restart"); d != "d" {
		t.Errorf("after a restart it hears of %s", d)
	}
}
