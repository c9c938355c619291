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

// turn is the work on one input. It runs in a goroutine of its own.
type turn struct {
	agent       *Agent
	in          agent.Input
	ctx         context.Context // of the turn; work at the gateway continues when it ends
	startCtx    context.Context // ends with ctx, and when the turn is stopped before the gateway was asked for it
	cancelStart context.CancelFunc
	taken       func(error)   // acknowledges the input; counts once
	ready       chan struct{} // closed when running is known, or will stay nil
	stopTyping  func()        // ends keepTyping

	questions questions

	mu      sync.Mutex
	known   bool // ready is closed
	running *gateway.Turn
	left    bool                // the turn is over here
	handle  *gateway.TurnHandle // of the request to the gateway
	stopped bool                // by the user
	added   []*addition         // additions of the user
	adding  sync.Mutex          // held while an addition is sent; never together with mu

	// For the goroutine of the turn only.
	session         string // in which it started
	model, provider string
	resumed         bool // from before a restart
	steps           steps
}

const (
	startLimit = 2 * time.Minute  // for the gateway to accept a turn, after earlier turns of its session
	callLimit  = 20 * time.Second // of each other call
)

// typingInterval is how often a turn, which can be silent for hours, shows that it is working.
var typingInterval = time.Minute

// busyWait is the wait before another request to a gateway that is full or offline and names no
// wait, and to a store that failed.
var busyWait = 3 * time.Second

var errLost = errors.New("it is unknown whether the turn was started")

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

// post sends events to the conversation without waiting, for what matters only now.
func (t *turn) post(events ...agent.Event) {
	if len(events) > 0 {
		t.agent.host.Post(t.in.Device, nil, events...)
	}
}

// tell sends events to the conversation. It waits until they are stored if one of them must not be
// lost.
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

// store sends events to the conversation until they are stored, because the gateway sends them only
// once. It returns false if the server stops or the device is gone.
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
			t.stop() // nobody else could
			return false
		}
		t.agent.Log.Error("events not stored, retrying", "device", t.in.Device, "err", err)
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

// notice sends a message of this agent beside the turn, so that it does not count as part of the
// reply.
func (t *turn) notice(text string) { t.post(agent.Say{ID: agent.NewID(), Text: text, Final: true}) }

// end sends a last message of this agent and ends the turn, both or neither.
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

// run works on the input until its turn has ended. If the server stops before that, the turn is
// resumed after the restart.
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
			t.agent.Log.Warn("turn not started", "device", t.in.Device, "err", err)
			t.taken(nil)
			var refused *gateway.Error
			switch {
			case errors.As(err, &refused):
				t.end("The gateway refused this message: "+t.advice(refused), true)
			case errors.Is(err, errLost):
				t.end("It is unknown what happened to this message. Check before you send it again.", true)
			default:
				t.end("This message was not processed: "+sentence(err), true)
			}
			return
		}
	}
}

// rejected reports whether the gateway refused this turn because of the credential, although it
// accepts the credential otherwise: several servers list their models for everybody. If the turn
// waited for the owner, the user would not learn why nothing happens.
func (t *turn) rejected(err error) bool {
	var refused *gateway.Error
	if !errors.As(err, &refused) || !errors.Is(err, gateway.ErrSignIn) || !t.agent.check(t.ctx) {
		return false
	}
	t.agent.setCredentialErr(err)
	return true
}

// advice returns the gateway's words, and what the user can do.
func (t *turn) advice(e *gateway.Error) string {
	said := sentence(e)
	if strings.Contains(strings.ToLower(e.Code+" "+e.Message), "model") && offers("models")(t.agent.capabilities()) {
		return withPeriod(said) + " Choose a model with /model."
	}
	return said
}

// keepTyping shows every minute that the turn is working, until stopTyping is called.
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

// sentence returns an error as a sentence for people.
func sentence(err error) string {
	var refused *gateway.Error
	if errors.As(err, &refused) && refused.Message != "" {
		return refused.Message
	}
	return strings.TrimSuffix(plainText(err), ".") + "."
}

// plainText returns the text of err without the package name, for people.
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

// detach records that the gateway does not work on the turn, which starts again.
func (t *turn) detach() {
	t.mu.Lock()
	t.running, t.handle = nil, nil
	if t.stopped {
		t.cancelStart()
	}
	t.mu.Unlock()
	t.change(func(b *startedTurn) { b.Handle = nil })
}

// over records that nothing runs any more.
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

// followed waits for the running turn; nil if there is none. left is true if there will be none.
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

// stop stops the turn for the user. If the gateway is being asked for the turn, it is stopped once
// the gateway has it; otherwise it would run unseen.
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

// stopAtGateway stops a turn at the gateway once that can be reached. Its events tell how it ended.
// The caller holds t.mu.
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
			unnamed := errors.Is(err, gateway.ErrUnavailable) && running.Handle().RunID == "" && newer(t.agent.capabilities()) // its first event names the run
			switch {
			case err == nil || !t.runs(running):
				return
			case unnamed:
				t.pause(t.ctx, busyWait/10)
				continue
			}
			t.agent.Log.Warn("turn not stopped", "device", t.in.Device, "err", err, "retry", again)
			if errors.Is(err, gateway.ErrUnavailable) {
				t.notice("This gateway cannot stop a turn of this kind. It continues.")
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

// mayBeAtGateway reports whether the gateway may have the turn.
func (t *turn) mayBeAtGateway() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handle != nil
}

// text returns the text for the model: the quoted message, the user's text, and the text about a
// file.
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

// remember stores the handle before the gateway learns of the turn, and whenever it changes.
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

// change stores the state of the turn, and reports whether that succeeded.
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
		t.agent.Log.Error("turn not stored, a crash would lose it", "device", t.in.Device, "err", err)
	}
	return err == nil
}

// forget deletes the stored state of the turn.
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
		t.agent.Log.Error("end of a turn not stored", "device", t.in.Device, "err", err)
	}
}
