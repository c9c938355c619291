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

// callTimeout bounds the calls of a turn that are no stream.
const callTimeout = 60 * time.Second

// retry paces the repeats of a call.
var retry = backoff.Policy{Base: 250 * time.Millisecond, Max: 10 * time.Second}

// Turn is one turn of a conversation. All methods may be called concurrently, but there is one reader of Events at a time.
// A turn starts no goroutine: it moves while its events are read. It must be closed.
type Turn struct {
	client    *Client
	traits    turnTraits
	onHandle  func(TurnHandle)
	approvals approvals
	reader    chan struct{} // holds one token
	posting   chan struct{} // holds one token: answers reach the gateway in order

	mu         sync.Mutex // guards what follows
	handle     TurnHandle
	stream     *turnStream
	streamc    *conn // the route of the stream
	closed     bool
	stopped    bool // Stop was called
	slot       *sessionSlot
	ended      *Ended
	cancelRead context.CancelFunc // ends the wait of the reader

	// What follows belongs to the reader of Events.
	decoder     turnDecoder
	queue       []Event
	position    position
	gap         bool // events are missing, so the text is not whole
	unconfirmed bool // the reply of the call that started it was lost
	reconciling *reconciliation
	tries       int  // streams that gave nothing, one after the other
	opened      bool // the events of the run were asked for
}

func newTurn(c *Client, cn *conn, lease TurnHandle, onLease func(TurnHandle)) *Turn {
	t := &Turn{client: c, traits: traits(cn), onHandle: onLease, handle: lease, reader: make(chan struct{}, 1), posting: make(chan struct{}, 1)}
	t.reader <- struct{}{}
	t.posting <- struct{}{}
	t.position.seq = -1
	return t
}

// Lease returns what the turn is bound to now.
func (t *Turn) Handle() TurnHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handle
}

// Way says how the turn is run.
func (t *Turn) Mode() TurnMode { return t.Handle().Mode }

// setLease takes a new lease and tells the program.
func (t *Turn) setHandle(lease TurnHandle) {
	t.mu.Lock()
	same := t.handle == lease
	t.handle = lease
	t.mu.Unlock()
	if !same && t.onHandle != nil {
		t.onHandle(lease)
	}
}

// errReading: two readers would each get half of the events.
var errReading = errors.New("gateway: the events of this turn already have a reader")

// Events gives what happens until the turn is over; the last event is [Ended], and nothing comes after it. It waits for as
// long as the turn takes, opens broken streams of runs anew where the gateway replays, and finds out the outcome where a
// stream ended without saying it. The route is not chosen anew while a stream lasts.
//
// An error ends the sequence and not the turn: ctx is done ([context.Context.Err]), the turn was closed ([ErrClosed]), or
// the gateway refuses ([ErrSignIn], [ErrIdentity], [*Error]). Events may then be called again, as after a break out of the
// loop, and goes on where it stopped. What fails in the turn itself is no error but an Ended.
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

// nextEvent returns the next event of the queue, and fills that.
func (t *Turn) nextEvent(ctx context.Context) (Event, error) {
	for {
		if len(t.queue) > 0 {
			event := t.queue[0]
			t.queue[0] = nil
			if len(t.queue) == 1 {
				t.queue = t.queue[:0] // the next event takes its room
			} else {
				t.queue = t.queue[1:]
			}
			if e, over := event.(Ended); over {
				ended := e // of its own, or every event would make room for one
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

// read takes the next event of the stream.
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
	if err != io.EOF && !errors.Is(err, ErrTooLarge) {
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

// take reads what an event of the stream means.
func (t *Turn) take(ctx context.Context, ev sse.Event) {
	if _, run := t.decoder.(*runDecoder); run { // the ids of other streams may be anything, and mean no place in them
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

// heed does what an event asks of the turn, and keeps it for the reader where it is for him.
func (t *Turn) handleEvent(ctx context.Context, event Event, kept []Event) []Event {
	lease := t.Handle()
	switch e := event.(type) {
	case Started:
		if e.RunID != "" && lease.RunID == "" {
			lease.RunID = e.RunID
			t.setHandle(lease)
		}
	case Gap:
		t.gap = true
	case Reasoning:
		if !lease.Reasoning {
			return kept
		}
	case Status:
		if (e.Kind == StatusSubagentStarted || e.Kind == StatusSubagentEnded) && !lease.ToolEvents {
			return kept
		}
	case ToolStarted:
		t.approvals.countTool(true)
		if !lease.ToolEvents {
			return kept
		}
	case ToolEnded:
		t.approvals.countTool(false)
		t.postDue(ctx, nil)
		if !lease.ToolEvents {
			return kept
		}
	case ApprovalRequested:
		if lease.Mode == ModeCompletions && lease.RunID == "" && e.RunID != "" {
			lease.RunID = e.RunID // approvals of completions are answered under their id (api-facts §6)
			t.setHandle(lease)
		}
		var show bool
		if e.Approval, show = t.approvals.add(e.Approval, t.position.number(), true); !show {
			return kept
		}
		event = e
	case ApprovalAnswered:
		ids := t.approvals.resolved(e.Choice, e.count)
		t.postDue(ctx, nil)
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

// here is where events belong that this package makes.
func (t *Turn) newMeta() Meta { return t.fillMeta(Meta{Time: time.Now().UTC()}) }

// complete fills in what an event does not say.
func (t *Turn) fillMeta(m Meta) Meta {
	lease := t.Handle()
	if m.SessionID == "" {
		m.SessionID = lease.SessionID
	}
	if m.RunID == "" {
		m.RunID = lease.RunID
	}
	m.Position = t.position.String(t.decoder)
	return m
}

// end makes outcome the end of the turn.
func (t *Turn) end(o Outcome) {
	if o.SessionID == "" {
		o.SessionID = t.Handle().SessionID
	}
	t.queue = append(t.queue, Ended{Meta: t.newMeta(), Outcome: o})
}

// finish gives back what the turn held.
func (t *Turn) finish(ended *Ended) {
	t.mu.Lock()
	t.ended = ended
	place := t.slot
	t.mu.Unlock()
	t.dropStream()
	place.release("")
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

// keep makes s the stream of the turn, unless it was closed meanwhile.
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

// Close lets go of the turn. A run goes on at the gateway, and [Client.ResumeTurn] comes back to it; the other ways end
// with their stream, but for a session of 0.19, which goes on unseen (api-facts §4.5). It may be called several times.
func (t *Turn) Close() {
	t.mu.Lock()
	run := ""
	if t.ended == nil && t.handle.Mode == ModeRun {
		run = t.handle.RunID
	}
	t.closed = true
	place, leave := t.slot, t.cancelRead
	t.mu.Unlock()
	if leave != nil {
		leave()
	}
	t.dropStream()
	place.release(run)
}
