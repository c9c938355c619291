package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

// StartTurn starts a turn in the best mode that the gateway offers and that fits the request: a
// run, a stream of its session, a response or a completion, in this order. A request with images
// and a session uses the stream, because runs drop images. [Turn.Mode] returns the mode.
//
// StartTurn repeats the call only if nothing of it left this machine, or if the gateway supports
// idempotency keys. Otherwise a lost response is no error: StartTurn returns the turn, and its
// events tell what the gateway stored of it. [Absent] means that the turn can be started again.
//
// On gateways that do not queue turns (0.19), StartTurn waits for earlier turns of the session. ctx
// limits the start, not the turn.
//
// The error is [ErrNoRoute], [ErrSignIn], [ErrUnavailable] for a mode that the gateway does not
// offer, [ErrTooLarge], or an [*Error] for a refusal. Its RetryAfter is set if the gateway is full.
func (c *Client) StartTurn(ctx context.Context, req TurnRequest) (*Turn, error) {
	cn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	mode, err := chooseMode(cn.caps, req)
	if err != nil {
		return nil, err
	}
	if err := req.check(traits(cn).hermes); err != nil {
		return nil, err
	}
	slot, err := c.acquireSlot(ctx, cn, mode, req.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := c.start(ctx, mode, req)
	if err != nil {
		slot.release("")
		return nil, err
	}
	t.slot = slot
	return t, nil
}

// acquireSlot acquires the slot of a session if the gateway needs one, and waits for a run that was
// left in the session.
func (c *Client) acquireSlot(ctx context.Context, cn *conn, mode TurnMode, session string) (*sessionSlot, error) {
	if traits(cn).newer || session == "" || mode != ModeRun && mode != ModeSession {
		return nil, nil
	}
	slot, err := c.turns.acquire(ctx, session)
	if err != nil {
		return nil, err
	}
	for n := 0; slot.leftover() != ""; n++ {
		status, err := c.runStatus(ctx, slot.leftover())
		var refused *Error
		switch {
		case err == nil && status.over(), errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			slot.clearLeftover()
			continue
		case err != nil && !isTemporary(err):
			slot.release(slot.leftover())
			return nil, err
		}
		if err := retry.Wait(ctx, n); err != nil {
			slot.release(slot.leftover())
			return nil, err
		}
	}
	return slot, nil
}

// start makes the handle and sends the call.
func (c *Client) start(ctx context.Context, mode TurnMode, req TurnRequest) (*Turn, error) {
	cn, err := c.connected(ctx) // again, because the wait may have been long
	if err != nil {
		return nil, err
	}
	if !mode.offers(cn.caps) {
		return nil, &UnavailableError{Operation: mode.operation()}
	}
	stored, after, err := c.before(ctx, cn, mode, req.SessionID)
	if err != nil {
		return nil, err
	}
	history := req.History
	if req.SessionID != "" {
		history = stored.history(maxHistory)
		if traits(cn).newer {
			history = nil
		}
	}
	body, err := req.body(mode, cn.caps, history)
	if err != nil {
		return nil, err
	}
	handle, err := newHandle(cn, mode, req, after)
	if err != nil {
		return nil, err
	}
	t := newTurn(c, cn, handle, req.OnHandle)
	if t.onHandle != nil {
		t.onHandle(handle)
	}
	if mode == ModeRun {
		err = t.startRun(ctx, cn, body)
	} else {
		err = t.startStream(ctx, cn, body)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// before reads the end of the transcript, so that the rows of the turn can be recognized later. It
// reads the whole transcript if the turn needs it as its history.
func (c *Client) before(ctx context.Context, cn *conn, mode TurnMode, session string) (transcript, int64, error) {
	switch {
	case mode != ModeRun && mode != ModeSession, session != "" && !cn.caps.Offers("session_messages"):
		return transcript{}, -1, nil
	case session == "":
		return transcript{}, 0, nil
	}
	stored, err := readTranscript(ctx, cn, session, 1)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound && mode == ModeRun {
		return transcript{}, 0, nil // the run will create the session
	}
	if err != nil {
		c.reportNetworkError(ctx, cn, err)
		return transcript{}, 0, err
	}
	return stored, stored.last(), nil
}

// reportNetworkError drops the route after a network error, unless ctx caused it.
func (c *Client) reportNetworkError(ctx context.Context, cn *conn, err error) {
	var network *networkError
	if errors.As(err, &network) && ctx.Err() == nil {
		c.dropRoute(cn, err)
	}
}

func newHandle(cn *conn, mode TurnMode, req TurnRequest, after int64) (TurnHandle, error) {
	endpoint, err := cn.endpoint(mode.operation(), []string{"session_id", req.SessionID})
	if err != nil {
		return TurnHandle{}, err
	}
	handle := TurnHandle{Mode: mode, Method: endpoint.Method, Endpoint: endpoint.Path, IdempotencyKey: req.IdempotencyKey, ToolEvents: cn.caps.Feature("tool_progress_events"),
		Reasoning: !traits(cn).hermes || cn.caps.Feature("reasoning_streaming"), // other servers list no features and send it or not
		Images:    len(req.Images), Started: time.Now().UTC().Truncate(time.Millisecond), IdleTimeout: req.IdleTimeout, OutcomeTimeout: req.OutcomeTimeout, After: after, Digest: digest(req.Text)}
	if mode == ModeRun || mode == ModeSession {
		handle.SessionID = req.SessionID
	}
	if mode == ModeResponses {
		handle.PreviousResponseID = req.PreviousResponseID
	}
	if handle.IdempotencyKey == "" {
		handle.IdempotencyKey = newKey()
	}
	if handle.IdleTimeout <= 0 {
		handle.IdleTimeout = defaultIdleTimeout
	}
	if handle.OutcomeTimeout <= 0 {
		handle.OutcomeTimeout = defaultOutcomeTimeout
	}
	return handle.bind(cn), nil
}

// maxRepeats limits how often the call that starts a turn is repeated.
const maxRepeats = 6

// startRun creates the run.
func (t *Turn) startRun(ctx context.Context, cn *conn, body json.RawMessage) error {
	for n := 0; ; n++ {
		id, sent, err := t.createRun(ctx, cn, body)
		if err == nil {
			handle := t.Handle()
			handle.RunID = id
			if handle.SessionID == "" {
				handle.SessionID = id
			}
			t.setHandle(handle)
			t.decoder = &runDecoder{sessionID: handle.SessionID, runID: id}
			t.queue = append(t.queue, Started{Meta: t.newMeta()}) // the events of a run have no such event
			return nil
		}
		t.client.reportNetworkError(ctx, cn, err)
		keyed := traits(cn).idempotent
		switch {
		case sent && !maybeStarted(err):
			return err
		case sent && !keyed:
			if ctx.Err() != nil {
				return fmt.Errorf("gateway: unknown whether the turn was started: %w", ctx.Err())
			}
			t.decoder, t.unconfirmed = &runDecoder{sessionID: t.Handle().SessionID}, true
			t.startReconcile()
			return nil
		case !sent && (!isNetworkError(err) || ctx.Err() != nil):
			return err
		case n == maxRepeats:
			return fmt.Errorf("gateway: unknown whether the turn was started, start it again with the same idempotency key: %w", err)
		}
		if err := retry.Wait(ctx, n); err != nil {
			return err
		}
		if cn, err = t.reconnect(ctx, keyed && sent); err != nil {
			return err
		}
	}
}

// reconnect returns the route for a repeat. If a key was sent, the gateway must support keys.
func (t *Turn) reconnect(ctx context.Context, keyed bool) (*conn, error) {
	cn, err := t.client.connected(ctx)
	if err != nil {
		return nil, err
	}
	if keyed && !traits(cn).idempotent {
		return nil, &UnavailableError{Operation: "runs_idempotency"}
	}
	t.setHandle(t.Handle().bind(cn))
	return cn, nil
}

// createRun sends POST /v1/runs once.
func (t *Turn) createRun(ctx context.Context, cn *conn, body json.RawMessage) (id string, sent bool, err error) {
	handle := t.Handle()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var wrote atomic.Bool
	req, err := cn.requestPath(traceSent(ctx, &wrote), handle.Method, handle.Endpoint, nil, body)
	if err != nil {
		return "", false, err
	}
	if traits(cn).idempotent {
		// Only then: net/http repeats a POST with this header by itself, and a gateway that ignores
		// the header would run it twice.
		req.Header.Set("Idempotency-Key", handle.IdempotencyKey)
	}
	var reply struct {
		RunID string `json:"run_id"`
	}
	if err := cn.call(req, &reply); err != nil {
		return "", wrote.Load(), err
	}
	if reply.RunID == "" {
		return "", true, errors.New("gateway: malformed response: it names no run")
	}
	return reply.RunID, true, nil
}

// maybeStarted reports whether a failed call may have started a turn: the connection broke, or a
// proxy answered instead of the gateway.
func maybeStarted(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout || refused.Status == http.StatusRequestTimeout
	}
	return true
}

// isNetworkError reports whether a request failed below HTTP, so that another try may succeed.
func isNetworkError(err error) bool {
	var network *networkError
	return errors.As(err, &network)
}

// startStream sends the call of a mode whose response is the turn itself.
func (t *Turn) startStream(ctx context.Context, cn *conn, body json.RawMessage) error {
	handle := t.Handle()
	switch handle.Mode {
	case ModeSession:
		t.decoder = &sessionDecoder{sessionID: handle.SessionID}
	case ModeResponses:
		t.decoder = &responsesDecoder{hermes: t.traits.hermes}
	default:
		t.decoder = &completionsDecoder{}
	}
	for n := 0; ; n++ {
		stream, sent, err := openStream(ctx, cn, handle.IdleTimeout, func(ctx context.Context) (*http.Request, error) {
			return cn.requestPath(ctx, handle.Method, handle.Endpoint, nil, body)
		})
		if err == nil {
			return t.takeResponse(stream, cn)
		}
		t.client.reportNetworkError(ctx, cn, err)
		switch {
		case sent && maybeStarted(err) && ctx.Err() == nil && t.isStored():
			t.unconfirmed = true
			t.startReconcile()
			return nil
		case sent, !isNetworkError(err), ctx.Err() != nil, n == 2:
			return err
		}
		if err := retry.Wait(ctx, n); err != nil {
			return err
		}
		if cn, err = t.reconnect(ctx, false); err != nil {
			return err
		}
		handle = t.Handle()
	}
}

// wholeDecoder decodes the response of a server that does not stream.
type wholeDecoder interface {
	document(data []byte) []Event
}

// takeResponse takes the response of a stream. A response that is labeled as an event stream is not
// read yet, because it may be slow.
func (t *Turn) takeResponse(s *turnStream, cn *conn) error {
	if !s.sse {
		document, err := s.document()
		if err != nil {
			s.close()
			return err
		}
		if document {
			defer s.close()
			data, err := s.whole()
			if err != nil {
				return err
			}
			return t.document(data)
		}
	}
	t.setStream(s, cn)
	return nil
}

// document decodes a response that is not a stream.
func (t *Turn) document(data []byte) error {
	d, ok := t.decoder.(wholeDecoder)
	if !ok {
		return errNotStream
	}
	if t.queue = d.document(data); len(t.queue) == 0 {
		return errUnreadable
	}
	return nil
}

// isStored reports whether the gateway stores the turn, so that its outcome can be looked up.
func (t *Turn) isStored() bool {
	mode := t.Mode()
	return mode == ModeRun || mode == ModeSession
}
