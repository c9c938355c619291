package hub_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// burst writes frames at once, without reading, and leaves in the middle of it.
func (c *client) burst(frames ...frame.Up) {
	for _, f := range frames {
		if c.ws.Write(ctx, websocket.MessageText, frame.EncodeUp(f)) != nil {
			break
		}
	}
	_ = c.ws.CloseNow()
}

// A device that sends frames of all kinds and is gone before they are dealt with: they are applied together with its
// leaving, and must not meet a connection that is no more.
func TestFramesOfADeviceThatLeft(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.AllowAllUsers = false })
	value[access.User](t)(w.pairing.ApproveUser("friend", ""))
	stranger := false
	for round := range 60 {
		user := "friend"
		if stranger = !stranger; stranger {
			user = "stranger"
		}
		id := fmt.Sprintf("%s-%d", user, round)
		c := w.connect(id, withUser(user))
		w.hub.Post(id, nil, agent.Say{ID: agent.NewID(), Text: "something to be stored in the same batch", Final: true})
		c.burst(
			&frame.Text{ID: "m1", Text: "one"},
			&frame.Call{ID: "c1", Method: "devices.list", Params: []byte("{}")},
			&frame.Call{ID: "c2", Method: "none", Params: []byte("{}")},
			&frame.Stop{ID: "s1"},
			&frame.Answer{ID: "a1", PromptID: "p", OptionID: "x"},
			&frame.Ack{Seq: 1},
			&frame.Text{ID: "m2", Text: "two"},
			&frame.Call{ID: "c3", Method: "none", Params: []byte("{}")},
			&frame.Deliver{ID: "d1", To: id, Text: "x"})
	}
	c := w.connect("after", withUser("friend"))
	c.text("m1", "is anybody there?")
}

// The same against connections that are replaced, revoked and unbound under the frames.
func TestFramesOfAReplacedConnection(t *testing.T) {
	w := newWorld(t, nil)
	for round := range 30 {
		id := fmt.Sprint("d", round)
		c := w.connect(id)
		var wg sync.WaitGroup
		wg.Go(func() {
			c.burst(&frame.Text{ID: "m1", Text: "one"}, &frame.Call{ID: "c1", Method: "none", Params: []byte("{}")}, &frame.Text{ID: "m2", Text: "two"},
				&frame.Call{ID: "c2", Method: "none", Params: []byte("{}")})
		})
		switch round % 3 {
		case 0:
			w.open(id)
		case 1:
			ok(t, w.hub.Owner().Revoke(ctx, id))
		case 2:
			ok(t, w.hub.Owner().Unbind(ctx, id))
		}
		wg.Wait()
	}
	w.connect("after").text("m1", "is anybody there?")
}

// Two deliveries with one id at the same moment to two devices: one is made, the other is answered like it, and nobody
// says that the store failed.
func TestDeliveryTwiceAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.connect("a"), w.connect("b")
	for i := range 40 {
		id := fmt.Sprint("x", i)
		var wg sync.WaitGroup
		for _, to := range []string{"a", "b"} {
			wg.Go(func() {
				d, err := w.hub.Owner().Deliver(ctx, "sender", &frame.Deliver{ID: id, To: to, Text: id})
				if err != nil {
					t.Error(err)
				} else if _, is := d.(*frame.Delivered); !is {
					t.Errorf("delivery %s to %s: %s", id, to, show(d))
				}
			})
		}
		wg.Wait()
	}
	if got := len(texts(t, a.sync())) + len(texts(t, b.sync())); got != 40 {
		t.Errorf("%d deliveries of 40 ids", got)
	}
	if at := w.hub.StoreFailedAt(); !at.IsZero() {
		t.Error("a repeated delivery counts as a failure of the store")
	}
}
