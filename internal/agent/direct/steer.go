package direct

import (
	"context"
	"errors"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// addition is a text of the user that joins a running turn.
type addition struct {
	in    agent.Input
	taken func(error)
}

// addRetry is the wait before another try to add to a turn that waits for an approval, or has just
// started.
var addRetry = 500 * time.Millisecond

const addInDoubt = "It is unknown whether the agent got this addition to its turn, because the connection broke at that moment. It was not sent again, so that nothing is done twice."

// joins returns the running turn that an input joins, nil if it cannot.
func (a *Agent) joins(in agent.Input) *turn {
	t := a.turnOf(in.Device)
	caps := a.capabilities()
	if t == nil || in.Joins == 0 || t.in.N != in.Joins || in.Kind != agent.Text || caps == nil || !caps.Offers("run_steer") {
		return nil
	}
	return t
}

// add sends an addition to the gateway, or returns it to the hub. The model would read it twice if
// it were sent twice, so the agent stores first that it sends it.
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
		case errors.As(err, &refused) && refused.Code == "run_not_accepting_steer": // the turn waits for an approval, or is over
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

// give sends an addition to the run, if there is one. Additions are sent one at a time, so that
// their order is known.
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

// keep stores an addition that the gateway has, until the turn ends.
func (t *turn) keep(d *addition) {
	t.mu.Lock()
	over := t.left
	if !over {
		t.added = append(t.added, d)
	}
	t.mu.Unlock()
	if over { // the gateway accepted it at the very end
		d.taken(nil)
		t.post(agent.Done{N: d.in.N})
	}
}

// settle ends the additions to the turn. The reply answers them, or they start a turn of their own
// if the gateway says that the model did not read them.
func (t *turn) settle(o *gateway.Outcome) (events []agent.Event) {
	t.adding.Lock() // additions that are being sent belong to it too
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

// unread returns how many of the last texts the model did not read. The gateway joins them with
// line feeds.
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
	return min(1, len(list)) // in another form: the last one was most likely late
}

// settleLater leaves the additions to the next start of the server, which knows only that they were
// sent.
func (t *turn) settleLater() {
	t.mu.Lock()
	list := t.added
	t.added, t.left = nil, true
	t.mu.Unlock()
	for _, d := range list {
		d.taken(agent.ErrAway)
	}
}
