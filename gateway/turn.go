package gateway

import (
	"context"
	"errors"
	"io"
	"iter"
	"sync"
	"time"

	"hermes-mobile/internal/backoff"
	"hermes-mobile/internal/sse"
)

// callTimeout limits each call about a turn that is not a stream.
const callTimeout = 60 * time.Second

// retry paces the repeats of a call.
var retry = backoff.Policy{Base: 250 * time.Millisecond, Max: 10 * time.Second}

// Turn is one message and the agent's work on it. Start it with [Client.StartTurn], read
// [Turn.Events] to its end, and close it.
//
// All methods may be called concurrently, but only one reader of Events at a time. A Turn starts no
// goroutine: it advances only while its events are read.
type Turn struct {
	client    *Client
	traits    turnTraits
	onHandle  func(TurnHandle)
	approvals approvals
	reader    chan struct{} // a channel of one, taken by the reader of Events
	posting   chan struct{} // a channel of one: answers reach the gateway in order

	mu         sync.Mutex // guards the fields below, up to cancelRead
	handle     TurnHandle
	stream     *turnStream
	streamc    *conn // route of the stream
	closed     bool
	stopped    bool // Stop was called
	slot       *sessionSlot
	ended      *Ended
	cancelRead context.CancelFunc // ends the wait of the reader

	// The fields below belong to the reader of Events.
	decoder     turnDecoder
	queue       []Event
	position    position
	gap         bool // events were missed, so the text is incomplete
	unconfirmed bool // the response to the call that started it was lost
	reconciling *reconciliation
	tries       int  // consecutive streams without events
	opened      bool // the events of the run were requested before
}

func newTurn(c *Client, cn *conn, handle TurnHandle, onHandle func(TurnHandle)) *Turn {
	t := &Turn{client: c, traits: traits(cn), onHandle: onHandle, handle: handle, reader: make(chan struct{}, 1), posting: make(chan struct{}, 1)}
	t.reader <- struct{}{}
	t.posting <- struct{}{}
	t.position.seq = -1
	return t
}

// Handle returns the current handle of the turn.
func (t *Turn) Handle() TurnHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handle
}

// Mode returns how the turn runs.
func (t *Turn) Mode() TurnMode { return t.Handle().Mode }

// setHandle stores a new handle and passes it to the host program.
func (t *Turn) setHandle(handle TurnHandle) {
	t.mu.Lock()
	same := t.handle == handle
	t.handle = handle
	t.mu.Unlock()
	if !same && t.onHandle != nil {
		t.onHandle(handle)
	}
}

// errReading prevents a second reader: each would get half of the events.
var errReading = errors.New("gateway: the events of this turn already have a reader")

// Events yields the events of the turn as they happen. The last one is always [Ended]. Events
// reopens broken streams of runs if the gateway replays events. It looks up the outcome if a stream
// ends without one. The route stays the same while a stream lasts.
//
// A failure of the turn is no error but an Ended with [Failed]. An error ends the sequence, not the
// turn: it is that of ctx, [ErrClosed] if the turn was closed, or a refusal by the gateway
// ([ErrSignIn], [ErrIdentity], [*Error]). A second concurrent reader gets an error at once. After
// an error, or a break out of the loop, Events may be called again and continues where it stopped.
func (t *Turn) Events(ctx context.Context) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		select {
		case <-t.reader:
			defer func() { t.reader <- struct{}{} }()
		default:
			yield(nil, errReading)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		t.mu.Lock()
		t.cancelRead = cancel
		t.mu.Unlock()
		unwatch := context.AfterFunc(ctx, func() {
			t.mu.Lock()
			stream := t.stream
			t.mu.Unlock()
			if stream != nil {
				stream.interruptRead(context.Cause(ctx))
			}
		})
		defer unwatch()
		for {
			event, err := t.nextEvent(ctx)
			if err != nil && t.isClosed() {
				err = ErrClosed
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if _, over := event.(Ended); !yield(event, nil) || over {
				return
			}
		}
	}
}

// nextEvent returns the next event. It fills the queue if that is empty.
func (t *Turn) nextEvent(ctx context.Context) (Event, error) {
	for {
		if len(t.queue) > 0 {
			event := t.queue[0]
			t.queue[0] = nil
			if len(t.queue) == 1 {
				t.queue = t.queue[:0] // the next event reuses the memory
			} else {
				t.queue = t.queue[1:]
			}
			if e, over := event.(Ended); over {
				ended := e // a copy, so that only this event is moved to the heap
				t.finish(&ended)
			}
			return event, nil
		}
		t.mu.Lock()
		ended, closed, stream, cn := t.ended, t.closed, t.stream, t.streamc
		t.mu.Unlock()
		switch {
		case ended != nil:
			return *ended, nil
		case closed:
			return nil, ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		var err error
		if stream == nil {
			err = t.advance(ctx)
		} else {
			err = t.read(ctx, stream, cn)
		}
		if err != nil {
			return nil, err
		}
	}
}

// read takes the next event from the stream.
func (t *Turn) read(ctx context.Context, stream *turnStream, cn *conn) error {
	ev, err := stream.next(ctx)
	if err == nil {
		t.take(ctx, ev)
		return nil
	}
	t.dropStream()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errDocument) && t.document(ev.Data) == nil {
		return nil
	}
	t.mu.Lock()
	closed, stopped := t.closed, t.stopped
	t.mu.Unlock()
	if closed {
		return ErrClosed
	}
	outcome, sure := t.decoder.end()
	switch {
	case sure:
		t.end(outcome)
		return nil
	case stopped && !t.isStored():
		outcome.State, outcome.Err = Cancelled, nil
		t.end(outcome)
		return nil
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, ErrTooLarge) {
		t.client.dropRoute(cn, err)
	}
	if !t.isStored() {
		t.end(outcome)
		return nil
	}
	if t.Mode() != ModeRun || !t.traits.newer || errors.Is(err, ErrTooLarge) {
		t.startReconcile()
		return nil
	}
	if t.tries == 0 {
		t.queue = append(t.queue, Status{Meta: t.newMeta(), Kind: StatusReconnecting})
	}
	t.tries++
	return nil
}

// take decodes an event of the stream.
func (t *Turn) take(ctx context.Context, ev sse.Event) {
	if _, run := t.decoder.(*runDecoder); run { // only the IDs of a run's stream are positions
		fresh, missed := t.position.advance(ev.ID)
		if !fresh {
			return
		}
		t.gap = t.gap || missed
	}
	t.tries = 0
	if d, ok := t.decoder.(deltaDecoder); ok {
		if delta, ok := d.delta(ev); ok {
			delta.Meta = t.fillMeta(delta.Meta)
			t.queue = append(t.queue, delta)
			return
		}
	}
	decoded := t.decoder.decode(ev, nil)
	for _, event := range decoded {
		t.queue = t.handleEvent(ctx, event, t.queue)
	}
}

// handleEvent updates the turn after an event, and appends it to kept if the reader should see it.
func (t *Turn) handleEvent(ctx context.Context, event Event, kept []Event) []Event {
	handle := t.Handle()
	switch e := event.(type) {
	case Started:
		if e.RunID != "" && handle.RunID == "" {
			handle.RunID = e.RunID
			t.setHandle(handle)
		}
	case Gap:
		t.gap = true
	case Reasoning:
		if !handle.Reasoning {
			return kept
		}
	case Status:
		if (e.Kind == StatusSubagentStarted || e.Kind == StatusSubagentEnded) && !handle.ToolEvents {
			return kept
		}
	case ToolStarted:
		t.approvals.countTool(true)
		if !handle.ToolEvents {
			return kept
		}
	case ToolEnded:
		t.approvals.countTool(false)
		_ = t.postDue(ctx, nil) // posted records what failed
		if !handle.ToolEvents {
			return kept
		}
	case ApprovalRequested:
		if handle.Mode == ModeCompletions && handle.RunID == "" && e.RunID != "" {
			handle.RunID = e.RunID // approvals of completions are answered under this ID (doc/hermes/api.md §6)
			t.setHandle(handle)
		}
		var show bool
		if e.Approval, show = t.approvals.add(e.Approval, t.position.number(), true); !show {
			return kept
		}
		event = e
	case ApprovalAnswered:
		ids := t.approvals.resolved(e.Choice, e.count)
		_ = t.postDue(ctx, nil) // posted records what failed
		for _, id := range ids {
			e.ApprovalID = id
			kept = append(kept, e.stamp(t.fillMeta(e.Meta)))
		}
		if len(ids) > 0 {
			return kept
		}
	case Ended:
		if t.gap || t.decoder.damaged() {
			t.repairText(ctx, &e.Outcome)
		}
		event = e
	}
	return append(kept, event.stamp(t.fillMeta(event.At())))
}

// newMeta returns the meta data of an event that this package makes.
func (t *Turn) newMeta() Meta { return t.fillMeta(Meta{Time: time.Now().UTC()}) }

// fillMeta adds what an event does not say.
func (t *Turn) fillMeta(m Meta) Meta {
	handle := t.Handle()
	if m.SessionID == "" {
		m.SessionID = handle.SessionID
	}
	if m.RunID == "" {
		m.RunID = handle.RunID
	}
	m.Position = t.position.String(t.decoder)
	return m
}

// end queues the end of the turn.
func (t *Turn) end(o Outcome) {
	if o.SessionID == "" {
		o.SessionID = t.Handle().SessionID
	}
	t.queue = append(t.queue, Ended{Meta: t.newMeta(), Outcome: o})
}

// finish releases what the turn holds.
func (t *Turn) finish(ended *Ended) {
	t.mu.Lock()
	t.ended = ended
	slot := t.slot
	t.mu.Unlock()
	t.dropStream()
	slot.release("")
}

func (t *Turn) dropStream() {
	t.mu.Lock()
	stream := t.stream
	t.stream, t.streamc = nil, nil
	t.mu.Unlock()
	if stream != nil {
		stream.close()
	}
}

// setStream makes s the stream of the turn, unless the turn was closed meanwhile.
func (t *Turn) setStream(s *turnStream, cn *conn) {
	t.mu.Lock()
	closed := t.closed
	if !closed {
		t.stream, t.streamc = s, cn
	}
	t.mu.Unlock()
	if closed {
		s.close()
	}
}

// Close releases the turn and ends a read of its events. A run continues at the gateway;
// [Client.ResumeTurn] returns to it. A turn in another mode ends with its stream, except on 0.19,
// where the stream of a session runs on unseen (doc/hermes/api.md §4.5). Close may be called
// several times.
func (t *Turn) Close() {
	t.mu.Lock()
	run := ""
	if t.ended == nil && t.handle.Mode == ModeRun {
		run = t.handle.RunID
	}
	t.closed = true
	slot, leave := t.slot, t.cancelRead
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	t.dropStream()
	slot.release(run)
}
