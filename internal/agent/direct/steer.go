package direct

import (
	"context"
	"errors"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// addition is a text of the person that joins a turn while it runs.
type addition struct {
	in    agent.Input
	taken func(error)
}

// addAgain is how long to wait before a turn that asks the person something, or has just begun, is told again.
var addRetry = 500 * time.Millisecond

const addInDoubt = "It isn't known whether the agent got this addition to its turn: the connection broke off at that moment. It wasn't sent again, so nothing is done twice."

// joins returns the running turn that an input is to be added to, nil where it cannot.
func (a *Agent) joins(in agent.Input) *turn {
	t := a.turnOf(in.Device)
	caps := a.capabilities()
	if t == nil || in.Joins == 0 || t.in.N != in.Joins || in.Kind != agent.Text || caps == nil || !caps.Offers("run_steer") {
		return nil
	}
	return t
}

// add gives an addition to the gateway, or back to the hub. The gateway would read it twice if it came twice, so it is stored
// first that it is given.
func (t *turn) add(ctx context.Context, d *addition) {
	given := agent.Given{N: d.in.N}
	stored := make(chan error, 1)
	t.agent.host.Post(d.in.Device, func(err error) { stored <- err }, given)
	select {
	case err := <-stored:
		if err != nil {
			d.taken(agent.ErrAway)
			return
		}
	case <-ctx.Done():
		d.taken(agent.ErrAway)
		return
	}
	back := func(why error) {
		given.Back = true
		t.post(given)
		d.taken(why)
	}
	for {
		running, over := t.reach()
		if over || t.isStopped() {
			back(agent.ErrOwnTurn)
			return
		}
		err := t.give(ctx, running, d)
		var refused *gateway.Error
		switch {
		case running == nil:
		case err == nil:
			return
		case errors.Is(err, gateway.ErrUnavailable), errors.Is(err, gateway.ErrClosed):
			back(agent.ErrOwnTurn)
			return
		case errors.As(err, &refused) && refused.Code == "run_not_accepting_steer": // it asks something, or is over
		case errors.As(err, &refused):
			back(agent.ErrOwnTurn)
			return
		default:
			d.taken(nil)
			t.post(agent.Say{ID: agent.NewID(), Text: addInDoubt, Final: true, ReplyTo: d.in.ID, N: d.in.N}, agent.Done{N: d.in.N})
			return
		}
		if !t.pause(ctx, addRetry) {
			back(agent.ErrAway)
			return
		}
	}
}

// give gives an addition to the run, where there is one yet. They go one after the other, so that their order is known.
func (t *turn) give(ctx context.Context, running *gateway.Turn, d *addition) error {
	t.adding.Lock()
	defer t.adding.Unlock()
	if running == nil {
		return nil
	}
	err := running.Steer(ctx, d.in.Text)
	if err == nil {
		t.keep(d)
	}
	return err
}

// reach returns the run of the turn, nil if it has not started, and whether the turn is over.
func (t *turn) reach() (running *gateway.Turn, over bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running, t.left
}

// keep remembers what the gateway has, until the turn ends.
func (t *turn) keep(d *addition) {
	t.mu.Lock()
	over := t.left
	if !over {
		t.added = append(t.added, d)
	}
	t.mu.Unlock()
	if over { // it took it at its very end
		d.taken(nil)
		t.post(agent.Done{N: d.in.N})
	}
}

// settle ends what was added to the turn: the reply answers it, or it begins a turn of its own where the gateway says that the model
// did not read it.
func (t *turn) settle(o *gateway.Outcome) (events []agent.Event) {
	t.adding.Lock() // what is on its way belongs to it, too
	defer t.adding.Unlock()
	t.mu.Lock()
	list := t.added
	t.added, t.left = nil, true
	t.mu.Unlock()
	read := len(list)
	if o != nil {
		read -= unread(list, o.UnreadSteer)
	}
	for i, d := range list {
		if i >= read {
			events = append(events, agent.Given{N: d.in.N, Back: true})
			defer d.taken(agent.ErrOwnTurn)
			continue
		}
		d.taken(nil)
		events = append(events, agent.Done{N: d.in.N})
	}
	return events
}

// unread is how many of the last texts the model did not read: the gateway joins them by line feeds.
func unread(list []*addition, pending string) int {
	if pending = strings.TrimSpace(pending); pending == "" {
		return 0
	}
	joined := ""
	for n := 1; n <= len(list); n++ {
		joined = strings.TrimSpace(strings.TrimSpace(list[len(list)-n].in.Text) + "\n" + joined)
		if joined == pending {
			return n
		}
	}
	return min(1, len(list)) // in another form; the last was the likeliest to be late
}

// settleLater leaves what was added to the next life of the server, which knows no more of it than that it was given.
func (t *turn) settleLater() {
	t.mu.Lock()
	list := t.added
	t.added, t.left = nil, true
	t.mu.Unlock()
	for _, d := range list {
		d.taken(agent.ErrAway)
	}
}
