package direct

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/chat"
)

// turn is the work on one input, by a goroutine of its own.
type turn struct {
	agent *Agent
	in    chat.Input
	ctx   context.Context // of its work: what is done at the gateway goes on when it ends
	early context.Context // ends with ctx, and with a stop as long as the gateway was not asked for the turn
	halt  context.CancelFunc
	taken func(error)   // once
	begun chan struct{} // closed when running is known, nil where there will be none
	quiet func()        // ends the signs of life

	mu      sync.Mutex
	known   bool // begun is closed
	running *gateway.Turn
	lease   *gateway.Lease // under which the gateway is being asked for the turn, or was
	stopped bool           // by the person
	asked   []*question

	// Of the turn's own goroutine.
	session         string // that it began in
	model, provider string
	resumed         bool            // it was begun in an earlier life
	steps           []chat.ToolStep // tools that run
}

// question is an approval of this turn.
type question struct {
	approval string
	card     string
	decided  bool
}

const (
	startLimit = 2 * time.Minute  // for the gateway to take a turn, and for the turns before it in its session
	callLimit  = 20 * time.Second // of a call beside a turn
	lifeSign   = time.Minute      // a turn may be silent for hours
)

// busyWait is how long to wait before a gateway that is full or away is asked again, where it does not say, and a store that
// failed.
var busyWait = 3 * time.Second

var errLost = errors.New("what became of this message cannot be found out. Look before you send it again")

func newTurn(ctx context.Context, a *Agent, in chat.Input, taken func(error)) *turn {
	t := &turn{agent: a, in: in, ctx: ctx, begun: make(chan struct{}), quiet: func() {}}
	t.early, t.halt = context.WithCancel(ctx)
	var once sync.Once
	t.taken = func(err error) { once.Do(func() { taken(err) }) }
	return t
}

func (t *turn) say(id, text string, final bool) chat.Say {
	return chat.Say{ID: id, Text: text, Final: final, ReplyTo: t.in.ID, N: t.in.N}
}

// post gives events to the conversation and does not wait: for what means something only now.
func (t *turn) post(events ...chat.Event) {
	if len(events) > 0 {
		t.agent.host.Post(t.in.Device, nil, events...)
	}
}

// tell gives events to the conversation, and returns when those that last are stored.
func (t *turn) tell(events ...chat.Event) {
	for _, e := range events {
		say, text := e.(chat.Say)
		_, file := e.(chat.SendFile)
		_, card := e.(chat.Ask)
		if text && say.Final || file || card {
			t.store(events...)
			return
		}
	}
	t.post(events...)
}

// store gives events to the conversation until they are stored: what the gateway said once it does not say again. It is
// false when the server stops, or there is nobody any more to whom it could be said.
func (t *turn) store(events ...chat.Event) bool {
	for {
		stored := make(chan error, 1)
		t.agent.host.Post(t.in.Device, func(err error) { stored <- err }, events...)
		var err error
		select {
		case err = <-stored:
		case <-t.ctx.Done():
			return false
		}
		switch {
		case err == nil:
			return true
		case errors.Is(err, chat.ErrNoDevice):
			t.stop() // nobody is left who could
			return false
		}
		t.agent.Log.Error("what the agent said could not be stored, it is tried again", "device", t.in.Device, "error", err)
		if !t.pause(t.ctx, busyWait) {
			return false
		}
	}
}

func (t *turn) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// note says something of ours beside the turn, so that it does not count as a part of its reply.
func (t *turn) note(text string) { t.post(chat.Say{ID: chat.NewID(), Text: text, Final: true}) }

// end says a last text of ours and ends the turn, both or neither.
func (t *turn) end(text string, interrupted bool) {
	t.quiet()
	var events []chat.Event
	if text != "" {
		events = append(events, t.say(chat.NewID(), text, true))
	}
	if t.store(append(events, chat.Done{N: t.in.N, Interrupted: interrupted})...) {
		t.forget()
	}
}

// run works on the input until its turn has ended, or the server stops: then it is taken up again in the next life.
func (t *turn) run() {
	defer t.halt()
	defer t.over()
	if c, rest := command(t.in); c != nil {
		t.taken(nil)
		text := c.run(t, rest)
		switch {
		case t.ctx.Err() != nil:
		case t.isStopped():
			t.end("", true)
		default:
			t.end(text, false)
		}
		return
	}
	t.signs()
	defer t.quiet()
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
			t.detach()
		case t.ctx.Err() != nil:
			t.taken(chat.ErrAway)
			return
		case t.isStopped() && !t.isAsked():
			t.taken(nil)
			t.end("The turn was stopped.", true)
			return
		case away(err):
			t.agent.doubt()
			t.taken(chat.ErrAway)
			if !took {
				return
			}
			t.pause(t.early, busyWait)
		default:
			t.agent.Log.Warn("a turn was not begun", "device", t.in.Device, "error", err)
			t.taken(nil)
			var refused *gateway.Error
			if errors.As(err, &refused) {
				t.end("The gateway did not take this: "+sentence(err), true)
			} else {
				t.end("This was not worked on: "+sentence(err), true)
			}
			return
		}
	}
}

// signs tells every minute that the turn lives, until quiet is called.
func (t *turn) signs() {
	ctx, cancel := context.WithCancel(t.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for t.pause(ctx, lifeSign) {
			t.post(chat.Working{})
		}
	})
	t.quiet = func() { cancel(); work.Wait() }
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

// detach says that the gateway does not work on the turn, which is begun anew.
func (t *turn) detach() {
	t.mu.Lock()
	t.running, t.lease = nil, nil
	if t.stopped {
		t.halt()
	}
	t.mu.Unlock()
	t.change(func(b *begun) { b.Lease = nil })
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

// stop interrupts the turn for the person. One that the gateway is just being asked for is interrupted as soon as it has it:
// else it would go on unseen.
func (t *turn) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	t.stopped = true
	switch {
	case t.running != nil:
		t.interrupt(t.running)
	case t.lease == nil:
		t.halt()
	}
}

// interrupt has the gateway stop a turn, as soon as it can be reached; t.mu is held. Its events say how it ended.
func (t *turn) interrupt(running *gateway.Turn) {
	t.agent.work.Add(1)
	go func() {
		defer t.agent.work.Done()
		for t.runs(running) {
			ctx, cancel := context.WithTimeout(t.ctx, callLimit)
			err := running.Stop(ctx)
			cancel()
			var refused *gateway.Error
			again := away(err) || errors.As(err, &refused) && refused.Status >= 429 || errors.Is(err, context.DeadlineExceeded)
			unnamed := errors.Is(err, gateway.ErrUnavailable) && running.Lease().RunID == "" && newer(t.agent.capabilities()) // its first event says it
			switch {
			case err == nil || !t.runs(running):
				return
			case unnamed:
				t.pause(t.ctx, busyWait/10)
				continue
			}
			t.agent.Log.Warn("a turn could not be stopped", "device", t.in.Device, "error", err, "again", again)
			if errors.Is(err, gateway.ErrUnavailable) {
				t.note("This gateway cannot stop a turn of this kind. It goes on.")
			}
			if !again {
				return
			}
			t.pause(t.ctx, busyWait)
		}
	}()
}

// runs reports whether this is the running turn.
func (t *turn) runs(running *gateway.Turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running == running && t.ctx.Err() == nil
}

func (t *turn) isStopped() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stopped
}

// isAsked reports whether the gateway may have the turn.
func (t *turn) isAsked() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lease != nil
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
	t.mu.Lock()
	if t.stopped && t.lease == nil {
		t.mu.Unlock()
		return // nothing is sent any more
	}
	t.lease = &l
	t.mu.Unlock()
	t.change(func(b *begun) { b.Lease, b.Model, b.Provider = &l, t.model, t.provider })
}

// change writes down what is known of the turn.
func (t *turn) change(f func(*begun)) {
	err := t.agent.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
		next := begun{N: t.in.N}
		if c.Turn != nil && c.Turn.N == t.in.N {
			next = *c.Turn
		}
		f(&next)
		c.Turn = &next
	})
	if err != nil {
		t.agent.Log.Error("a turn could not be written down: after a crash nobody knows of it", "device", t.in.Device, "error", err)
	}
}

// forget takes the turn out of what is remembered.
func (t *turn) forget() {
	known, err := t.agent.memory.get(t.ctx, t.in.Device)
	if err == nil && (known.Turn == nil || known.Turn.N != t.in.N) {
		return
	}
	err = t.agent.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
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
	for {
		over, again, err := t.read(running, r)
		switch {
		case over || t.ctx.Err() != nil:
			return again // where the server stops the run goes on
		case (errors.Is(err, gateway.ErrSignIn) || errors.Is(err, gateway.ErrIdentity)) && !t.isStopped():
			// That is for the owner to mend. The run does not end by it.
			t.agent.doubt()
			t.pause(t.ctx, busyWait)
		default:
			t.agent.doubt()
			t.ended(r, gateway.Outcome{State: gateway.Unknown, Err: err})
			return false
		}
	}
}

// read says what the events tell, until the turn is over or an error interrupts them.
func (t *turn) read(running *gateway.Turn, r *reply) (over, again bool, err error) {
	for e, err := range running.Events(t.ctx) {
		if err != nil {
			return false, false, err
		}
		switch e := e.(type) {
		case gateway.ToolStarted:
			t.tell(append(r.finish(), t.toolStarted(e))...)
		case gateway.ToolEnded:
			t.toolEnded(e)
		case gateway.ApprovalRequested:
			t.ask(r, e.Approval)
		case gateway.ApprovalAnswered:
			t.answered(e)
		case gateway.Status:
			switch e.Kind {
			case gateway.StatusReconnecting, gateway.StatusSettling:
				t.agent.doubt()
			case gateway.StatusWaiting:
				t.askUnseen(r)
			}
		case gateway.Ended:
			if e.Outcome.State == gateway.Absent && t.resumed {
				return true, true, nil
			}
			t.ended(r, e.Outcome)
			return true, false, nil
		default:
			t.tell(r.apply(e)...)
		}
	}
	return false, false, gateway.ErrCut
}

// ended says the rest and ends the turn. It is forgotten only when its end is stored, so a crash in between has it looked
// up again and not run again.
func (t *turn) ended(r *reply, o gateway.Outcome) {
	t.quiet()
	events := append(r.end(o), t.closeAll()...)
	for _, s := range t.steps {
		s.State = "done"
		if o.State != gateway.Completed {
			s.State = "failed"
		}
		events = append(events, s)
	}
	if text := failure(o, r.given > 0 || t.in.Texts > 0, t.isStopped()); text != "" {
		events = append(events, t.say(chat.NewID(), text, true)) // no earlier life said it, for it would have ended the turn
	}
	t.agent.learn(t, o)
	if t.store(append(events, chat.Done{N: t.in.N, Interrupted: o.State != gateway.Completed})...) {
		t.forget()
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
