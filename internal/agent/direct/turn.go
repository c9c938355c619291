package direct

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// turn is the work on one input, by a goroutine of its own.
type turn struct {
	agent       *Agent
	in          agent.Input
	ctx         context.Context // of its work: what is done at the gateway goes on when it ends
	startCtx    context.Context // ends with ctx, and with a stop as long as the gateway was not asked for the turn
	cancelStart context.CancelFunc
	taken       func(error)   // once
	ready       chan struct{} // closed when running is known, nil where there will be none
	stopTyping  func()        // ends the signs of life

	questions questions

	mu      sync.Mutex
	known   bool // begun is closed
	running *gateway.Turn
	left    bool                // nobody works on it here any more
	handle  *gateway.TurnHandle // under which the gateway is being asked for the turn, or was
	stopped bool                // by the person
	added   []*addition         // to it, by the person
	adding  sync.Mutex          // held while one is given; not with mu

	// Of the turn's own goroutine.
	session         string // that it began in
	model, provider string
	resumed         bool // it was begun in an earlier life
	steps           steps
}

const (
	startLimit = 2 * time.Minute  // for the gateway to take a turn, and for the turns before it in its session
	callLimit  = 20 * time.Second // of a call beside a turn
)

// lifeSign is how often a turn that may be silent for hours says that it lives.
var typingInterval = time.Minute

// busyWait is how long to wait before a gateway that is full or away is asked again, where it does not say, and a store that
// failed.
var busyWait = 3 * time.Second

var errLost = errors.New("what became of this message cannot be found out. Look before you send it again")

func newTurn(ctx context.Context, a *Agent, in agent.Input, taken func(error)) *turn {
	t := &turn{agent: a, in: in, ctx: ctx, ready: make(chan struct{}), stopTyping: func() {}, steps: steps{n: in.N}}
	t.startCtx, t.cancelStart = context.WithCancel(ctx)
	var once sync.Once
	t.taken = func(err error) { once.Do(func() { taken(err) }) }
	return t
}

func (t *turn) say(id, text string, final bool) agent.Say {
	return agent.Say{ID: id, Text: text, Final: final, ReplyTo: t.in.ID, N: t.in.N}
}

// post gives events to the conversation and does not wait: for what means something only now.
func (t *turn) post(events ...agent.Event) {
	if len(events) > 0 {
		t.agent.host.Post(t.in.Device, nil, events...)
	}
}

// tell gives events to the conversation, and returns when those that last are stored.
func (t *turn) tell(events ...agent.Event) {
	for _, e := range events {
		say, text := e.(agent.Say)
		_, file := e.(agent.SendFile)
		_, card := e.(agent.Ask)
		if text && say.Final || file || card {
			t.store(events...)
			return
		}
	}
	t.post(events...)
}

// store gives events to the conversation until they are stored: what the gateway said once it does not say again. It is
// false when the server stops, or there is nobody any more to whom it could be said.
func (t *turn) store(events ...agent.Event) bool {
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
		case errors.Is(err, agent.ErrNoDevice):
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
func (t *turn) notice(text string) { t.post(agent.Say{ID: agent.NewID(), Text: text, Final: true}) }

// end says a last text of ours and ends the turn, both or neither.
func (t *turn) end(text string, interrupted bool) {
	t.stopTyping()
	var events []agent.Event
	if text != "" {
		events = append(events, t.say(agent.NewID(), text, true))
	}
	if t.store(append(events, agent.Done{N: t.in.N, Interrupted: interrupted})...) {
		t.forget()
	}
}

// run works on the input until its turn has ended, or the server stops: then it is taken up again in the next life.
func (t *turn) run() {
	defer t.cancelStart()
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
	t.keepTyping()
	defer t.stopTyping()
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
			t.taken(agent.ErrAway)
			return
		case t.isStopped() && !t.mayBeAtGateway():
			t.taken(nil)
			t.end("The turn was stopped.", true)
			return
		case unreachable(err) && !t.rejected(err):
			t.agent.probeNow()
			t.taken(agent.ErrAway)
			if !took {
				return
			}
			t.pause(t.startCtx, busyWait)
		default:
			t.agent.Log.Warn("a turn was not begun", "device", t.in.Device, "error", err)
			t.taken(nil)
			var refused *gateway.Error
			if errors.As(err, &refused) {
				t.end("The gateway did not take this: "+t.advice(refused), true)
			} else {
				t.end("This was not worked on: "+sentence(err), true)
			}
			return
		}
	}
}

// rejected reports whether the gateway refused this turn with a status that is about the credential, while it takes the credential
// otherwise: several servers list their models to everybody. Waiting for the owner would tell nobody why nothing happens.
func (t *turn) rejected(err error) bool {
	var refused *gateway.Error
	if !errors.As(err, &refused) || !errors.Is(err, gateway.ErrSignIn) || !t.agent.check(t.ctx) {
		return false
	}
	t.agent.setCredentialErr(err)
	return true
}

// advice is what a gateway said, with what the user can do about it.
func (t *turn) advice(e *gateway.Error) string {
	said := sentence(e)
	if strings.Contains(strings.ToLower(e.Code+" "+e.Message), "model") && offers("models")(t.agent.capabilities()) {
		return withPeriod(said) + " Choose a model with /model."
	}
	return said
}

// signs tells every minute that the turn lives, until quiet is called.
func (t *turn) keepTyping() {
	ctx, cancel := context.WithCancel(t.ctx)
	var work sync.WaitGroup
	work.Go(func() {
		for t.pause(ctx, typingInterval) {
			t.post(agent.Working{})
		}
	})
	t.stopTyping = func() { cancel(); work.Wait() }
}

// sentence is an error for people.
func sentence(err error) string {
	var refused *gateway.Error
	if errors.As(err, &refused) && refused.Message != "" {
		return refused.Message
	}
	return strings.TrimSuffix(plainText(err), ".") + "."
}

// plainText returns the text of err without the name of package gateway, for people.
func plainText(err error) string { return strings.TrimPrefix(err.Error(), "gateway: ") }

// attach makes the running turn known.
func (t *turn) attach(running *gateway.Turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = running
	if !t.known {
		t.known = true
		close(t.ready)
	}
	if t.stopped {
		t.stopAtGateway(running)
	}
}

// detach says that the gateway does not work on the turn, which is begun anew.
func (t *turn) detach() {
	t.mu.Lock()
	t.running, t.handle = nil, nil
	if t.stopped {
		t.cancelStart()
	}
	t.mu.Unlock()
	t.change(func(b *startedTurn) { b.Handle = nil })
}

// over says that nothing runs any more.
func (t *turn) over() {
	if t.ctx.Err() == nil {
		t.post(t.settle(nil)...)
	} else {
		t.settleLater()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running, t.left = nil, true
	if !t.known {
		t.known = true
		close(t.ready)
	}
}

// followed waits for the running turn; nil where there is none. left: and there will be none.
func (t *turn) followed(ctx context.Context) (running *gateway.Turn, left bool, err error) {
	select {
	case <-t.ready:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.running, t.left, nil
	case <-ctx.Done():
		return nil, false, ctx.Err()
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
		t.stopAtGateway(t.running)
	case t.handle == nil:
		t.cancelStart()
	}
}

// interrupt has the gateway stop a turn, as soon as it can be reached; t.mu is held. Its events say how it ended.
func (t *turn) stopAtGateway(running *gateway.Turn) {
	t.agent.work.Add(1)
	go func() {
		defer t.agent.work.Done()
		for t.runs(running) {
			ctx, cancel := context.WithTimeout(t.ctx, callLimit)
			err := running.Stop(ctx)
			cancel()
			var refused *gateway.Error
			again := unreachable(err) || errors.As(err, &refused) && refused.Status >= 429 || errors.Is(err, context.DeadlineExceeded)
			unnamed := errors.Is(err, gateway.ErrUnavailable) && running.Handle().RunID == "" && newer(t.agent.capabilities()) // its first event says it
			switch {
			case err == nil || !t.runs(running):
				return
			case unnamed:
				t.pause(t.ctx, busyWait/10)
				continue
			}
			t.agent.Log.Warn("a turn could not be stopped", "device", t.in.Device, "error", err, "again", again)
			if errors.Is(err, gateway.ErrUnavailable) {
				t.notice("This gateway cannot stop a turn of this kind. It goes on.")
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
func (t *turn) mayBeAtGateway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handle != nil
}

// text is what the model reads: what the person replies to stands before it, and after it what comes with it.
func (t *turn) text(beside string) string {
	text := strings.TrimPrefix(t.in.Text+"\n\n"+beside, "\n\n")
	if beside == "" {
		text = t.in.Text
	}
	if t.in.Quote != "" {
		text = "> " + strings.ReplaceAll(strings.TrimSpace(t.in.Quote), "\n", "\n> ") + "\n\n" + text
	}
	return text
}

// remember writes the lease down before the gateway hears of the turn, and whenever it changes.
func (t *turn) remember(l gateway.TurnHandle) {
	t.mu.Lock()
	if t.stopped && t.handle == nil {
		t.mu.Unlock()
		return // nothing is sent any more
	}
	t.handle = &l
	t.mu.Unlock()
	t.change(func(b *startedTurn) { b.Handle, b.Model, b.Provider = &l, t.model, t.provider })
}

// change writes down what is known of the turn, and reports whether that could be done.
func (t *turn) change(f func(*startedTurn)) bool {
	err := t.agent.memory.change(context.WithoutCancel(t.ctx), t.in.Device, func(c *conversation) {
		next := startedTurn{N: t.in.N}
		if c.Turn != nil && c.Turn.N == t.in.N {
			next = *c.Turn
		}
		f(&next)
		c.Turn = &next
	})
	if err != nil {
		t.agent.Log.Error("a turn could not be written down: after a crash nobody knows of it", "device", t.in.Device, "error", err)
	}
	return err == nil
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
