package direct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/chat"
)

// turn is the work on one input, by a goroutine of its own.
type turn struct {
	agent  *Agent
	in     chat.Input
	ctx    context.Context
	cancel context.CancelFunc
	taken  func(error)   // once
	begun  chan struct{} // closed when running is known, nil where there will be none

	mu      sync.Mutex
	known   bool // begun is closed
	running *gateway.Turn
	stopped bool // by the person
	asked   []*question

	// Of the turn's own goroutine.
	session string          // that it began in
	resumed bool            // it was begun in an earlier life
	steps   []chat.ToolStep // tools that run
}

// question is an approval of this turn.
type question struct {
	approval string
	card     string
	decided  bool
}

const (
	startLimit = 2 * time.Minute  // for the gateway to take a turn
	busyWait   = 3 * time.Second  // before a gateway that is full is asked again, where it does not say
	callLimit  = 20 * time.Second // of a call beside a turn
	lifeSign   = time.Minute
)

func (t *turn) say(id, text string, final bool) chat.Say {
	return chat.Say{ID: id, Text: text, Final: final, ReplyTo: t.in.ID, N: t.in.N}
}

func (t *turn) post(events ...chat.Event) {
	if len(events) > 0 {
		t.agent.post(t.in.Device, events...)
	}
}

// note says something of ours beside the turn, so that it does not count as a part of its reply.
func (t *turn) note(text string) { t.post(chat.Say{ID: chat.NewID(), Text: text, Final: true}) }

// end says a last text of ours, unless an earlier life did, and ends the turn.
func (t *turn) end(text string, skip bool) {
	var events []chat.Event
	if text != "" && !skip {
		events = append(events, t.say(chat.NewID(), text, true))
	}
	t.post(append(events, chat.Done{N: t.in.N})...)
}

// run works on the input until its turn has ended, or the server stops: then it is taken up again in the next life.
func (t *turn) run() {
	defer t.over()
	if c, rest := command(t.in); c != nil {
		t.taken(nil)
		text := c.run(t, rest)
		t.end(text, t.in.Texts > 0)
		return
	}
	for took := false; ; {
		running, err := t.start()
		switch {
		case err == nil:
			t.attach(running)
			t.taken(nil)
			took = true
			if !t.follow(running) {
				return
			}
			t.forget()
		case t.ctx.Err() != nil && !t.isStopped():
			t.taken(chat.ErrAway)
			return
		case t.isStopped():
			t.taken(nil)
			t.end("", false)
			return
		case away(err):
			t.agent.doubt()
			t.taken(chat.ErrAway)
			if !took {
				return
			}
			select {
			case <-time.After(busyWait):
			case <-t.ctx.Done():
			}
		default:
			t.agent.Log.Warn("the gateway did not take a turn", "device", t.in.Device, "error", err)
			t.taken(nil)
			t.end("The gateway did not take this: "+sentence(err), t.in.Texts > 0)
			t.forget()
			return
		}
	}
}

// sentence is an error for people.
func sentence(err error) string {
	var refused *gateway.Error
	if errors.As(err, &refused) && refused.Message != "" {
		return refused.Message
	}
	return strings.TrimSuffix(err.Error(), ".") + "."
}

// attach makes the running turn known.
func (t *turn) attach(running *gateway.Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = running
	if !t.known {
		t.known = true
		close(t.begun)
	}
	if t.stopped {
		t.interrupt(running)
	}
}

// over says that nothing runs any more.
func (t *turn) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = nil
	if !t.known {
		t.known = true
		close(t.begun)
	}
}

// followed waits for the running turn; nil where there is none.
func (t *turn) followed(ctx context.Context) (*gateway.Turn, error) {
	select {
	case <-t.begun:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.running, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// stop interrupts the turn for the person.
func (t *turn) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = true
	if !t.known {
		t.cancel() // it is not started yet
	} else if t.running != nil {
		t.interrupt(t.running)
	}
}

// interrupt has the gateway stop a turn; t.mu is held. Its events say how it ended.
func (t *turn) interrupt(running *gateway.Turn) {
	t.agent.work.Add(1)
	go func() {
		defer t.agent.work.Done()
		ctx, cancel := context.WithTimeout(t.ctx, callLimit)
		defer cancel()
		if err := running.Stop(ctx); err != nil && t.ctx.Err() == nil {
			t.agent.Log.Warn("a turn could not be stopped", "device", t.in.Device, "error", err)
			if errors.Is(err, gateway.ErrUnavailable) {
				t.note("This gateway cannot stop a turn of this kind. It goes on.")
			}
		}
	}()
}

func (t *turn) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// start begins the turn at the gateway, or takes up the one of an earlier life.
func (t *turn) start() (*gateway.Turn, error) {
	known, err := t.agent.memory.get(t.ctx, t.in.Device)
	if err != nil {
		return nil, err
	}
	caps := t.agent.capabilities()
	t.resumed = false
	if b := known.Turn; b != nil && b.N == t.in.N && b.Lease != nil {
		if b.Lease.RunID != "" || b.Lease.Way != gateway.WayRun || !caps.Feature("runs_idempotency") {
			t.session, t.resumed = b.Lease.SessionID, true
			return t.agent.Client.ResumeTurn(t.ctx, *b.Lease, "")
		}
		known.Session = b.Lease.SessionID // started again with its key it is the same run
	}
	images, err := t.attached()
	if err != nil {
		return nil, err
	}
	req := gateway.TurnRequest{Text: t.text(), Images: images, Model: known.Model, Provider: known.Provider,
		Key: fmt.Sprintf("hermes-mobile-%s-%d", t.agent.Instance, t.in.N)}
	sessions := caps.Offers("session_create")
	if sessions {
		if req.SessionID, err = t.agent.session(t.ctx, t.in.Device, known); err != nil {
			return nil, err
		}
	} else {
		req.History, req.Previous = known.History, known.Response
	}
	t.session = req.SessionID
	req.OnLease = func(l gateway.Lease) { t.remember(l) }
	for fresh := false; ; {
		running, err := t.begin(req)
		var refused *gateway.Error
		switch {
		case !errors.As(err, &refused):
			return running, err
		case refused.Status == 404 && sessions && !fresh:
			// The session was deleted elsewhere.
			fresh = true
			if req.SessionID, err = t.agent.newSession(t.ctx, t.in.Device, ""); err != nil {
				return nil, err
			}
			t.session = req.SessionID
		case refused.Status == 429 || refused.Status == 503:
			// It is full, or about to stop: the message waits, as everything does while the agent is away.
			wait := refused.RetryAfter
			if wait <= 0 {
				wait = busyWait
			}
			select {
			case <-time.After(min(wait, time.Minute)):
			case <-t.ctx.Done():
				return nil, t.ctx.Err()
			}
		default:
			return nil, err
		}
	}
}

func (t *turn) begin(req gateway.TurnRequest) (*gateway.Turn, error) {
	ctx, cancel := context.WithTimeout(t.ctx, startLimit)
	defer cancel()
	return t.agent.Client.StartTurn(ctx, req)
}

// text is what the model reads: what the person replies to stands before it.
func (t *turn) text() string {
	text := t.in.Text
	if t.in.Quote != "" {
		text = "> " + strings.ReplaceAll(strings.TrimSpace(t.in.Quote), "\n", "\n> ") + "\n\n" + text
	}
	return text
}

// remember writes the lease down before the gateway hears of the turn, and whenever it changes.
func (t *turn) remember(l gateway.Lease) {
	err := t.agent.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
		next := begun{N: t.in.N}
		if c.Turn != nil && c.Turn.N == t.in.N {
			next = *c.Turn
		}
		next.Lease = &l
		c.Turn = &next
	})
	if err != nil {
		t.agent.Log.Error("a turn could not be written down: after a crash it may run twice", "device", t.in.Device, "error", err)
	}
}

// forget takes the turn out of what is remembered.
func (t *turn) forget() {
	err := t.agent.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
		if c.Turn != nil && c.Turn.N == t.in.N {
			c.Turn = nil
		}
	})
	if err != nil {
		t.agent.Log.Error("the end of a turn could not be written down", "device", t.in.Device, "error", err)
	}
}

// follow reads the turn to its end and says what happens. again: the gateway knows nothing of a turn of an earlier life,
// which is to be begun.
func (t *turn) follow(running *gateway.Turn) (again bool) {
	defer running.Close()
	r := &reply{turn: t, skip: t.in.Texts}
	sign := time.Now()
	for e, err := range running.Events(t.ctx) {
		if err != nil {
			if t.ctx.Err() != nil {
				return false // the server stops, and the run goes on
			}
			t.agent.doubt()
			t.ended(r, gateway.Outcome{State: gateway.Unknown, Err: err})
			return false
		}
		if time.Since(sign) > lifeSign {
			sign = time.Now()
			t.post(chat.Working{})
		}
		switch e := e.(type) {
		case gateway.ToolStarted:
			t.post(append(r.finish(), t.toolStarted(e))...)
		case gateway.ToolEnded:
			t.toolEnded(e)
		case gateway.ApprovalRequested:
			t.ask(r, e.Approval)
		case gateway.ApprovalAnswered:
			t.answered(e)
		case gateway.Status:
			if e.Kind == gateway.StatusReconnecting || e.Kind == gateway.StatusSettling {
				t.agent.doubt()
			}
		case gateway.Ended:
			if e.Outcome.State == gateway.Absent && t.resumed {
				return true
			}
			t.ended(r, e.Outcome)
			return false
		default:
			t.post(r.apply(e)...)
		}
	}
	return false
}

// ended says the rest and ends the turn. It is forgotten only when its end is stored, so a crash in between has it looked
// up again and not run again.
func (t *turn) ended(r *reply, o gateway.Outcome) {
	events := append(r.end(o), t.closeAll()...)
	for _, s := range t.steps {
		s.State = "done"
		if o.State != gateway.Completed {
			s.State = "failed"
		}
		events = append(events, s)
	}
	if text := failure(o, r.given > 0, t.isStopped()); text != "" {
		if r.given++; r.given > r.skip {
			events = append(events, t.say(chat.NewID(), text, true))
		}
	}
	t.agent.learn(t, o)
	stored := make(chan error, 1)
	t.agent.host.Post(t.in.Device, func(err error) { stored <- err }, append(events, chat.Done{N: t.in.N, Interrupted: o.State != gateway.Completed})...)
	select {
	case err := <-stored:
		if err == nil {
			t.forget()
		}
	case <-t.ctx.Done():
	}
}

// failure is what a person is told of a turn that did not end well.
func failure(o gateway.Outcome, said, stopped bool) string {
	switch o.State {
	case gateway.Completed:
		if !said {
			return "The model gave no answer."
		}
	case gateway.Cancelled:
		if !said || !stopped {
			return "The turn was stopped."
		}
	case gateway.Interrupted:
		return "The turn was interrupted at the gateway. What there is of the answer is above, if anything."
	case gateway.Absent:
		return "The gateway knows nothing of this message: it was not worked on. Send it again."
	case gateway.Unknown:
		return "The connection to the gateway was lost, and what became of this message cannot be found out. Look before you send it again."
	case gateway.Failed:
		if o.Err != nil {
			return "The turn failed: " + sentence(o.Err)
		}
		return "The turn failed."
	}
	return ""
}

func (t *turn) toolStarted(e gateway.ToolStarted) chat.Event {
	s := chat.ToolStep{ID: chat.NewID(), Name: e.Name, State: "started", Title: e.Preview, N: t.in.N}
	t.steps = append(t.steps, s)
	return s
}

// toolEnded ends the tool that began first under this name, as gateways do not say which it was.
func (t *turn) toolEnded(e gateway.ToolEnded) {
	at := slices.IndexFunc(t.steps, func(s chat.ToolStep) bool { return s.Name == e.Name })
	if at < 0 {
		return
	}
	s := t.steps[at]
	t.steps = slices.Delete(t.steps, at, at+1)
	s.State, s.Text = "done", e.Preview
	if e.Failed {
		s.State = "failed"
	}
	t.post(s)
	if len(t.steps) == 0 { // nobody waits for an answer any more (api-facts §6)
		t.post(t.closeAll()...)
	}
}
