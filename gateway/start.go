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

// StartTurn starts a turn on the best way that the gateway offers and the request fits: a run, else the stream of its
// session, else a response, else a completion. A request with images goes by the session's stream, for runs drop images.
// [Turn.Way] says which it became.
//
// The call is made once. It is repeated only where nothing of it left this machine, or where the gateway knows the key of
// an earlier try. Where the reply was lost otherwise, the turn is returned all the same, and its events tell what the
// gateway stored of it; [Absent] means that it may be started again.
//
// On a gateway without a lock of its own (0.19) it waits until earlier turns of the session are over. The errors:
// [ErrNoRoute], [ErrSignIn], [ErrUnavailable] for a way that is not offered, [ErrTooBig], [*Error] for a refusal, with
// RetryAfter where the gateway is full. ctx bounds the start, not the turn.
func (c *Client) StartTurn(ctx context.Context, req TurnRequest) (*Turn, error) {
	cn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	way, err := chooseMode(cn.caps, req)
	if err != nil {
		return nil, err
	}
	if err := req.check(traits(cn).hermes); err != nil {
		return nil, err
	}
	place, err := c.acquireSlot(ctx, cn, way, req.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := c.start(ctx, way, req)
	if err != nil {
		place.release("")
		return nil, err
	}
	t.slot = place
	return t, nil
}

// enter takes the place in the line of a session, where one is needed, and waits for a run that was left in it.
func (c *Client) acquireSlot(ctx context.Context, cn *conn, way TurnMode, session string) (*sessionSlot, error) {
	if traits(cn).newer || session == "" || way != ModeRun && way != ModeSession {
		return nil, nil
	}
	place, err := c.turns.acquire(ctx, session)
	if err != nil {
		return nil, err
	}
	for n := 0; place.leftover() != ""; n++ {
		status, err := c.runStatus(ctx, place.leftover())
		var refused *Error
		switch {
		case err == nil && status.over(), errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			place.clearLeftover()
			continue
		case err != nil && !isTemporary(err):
			place.release(place.leftover())
			return nil, err
		}
		if err := retry.Wait(ctx, n); err != nil {
			place.release(place.leftover())
			return nil, err
		}
	}
	return place, nil
}

// start makes the lease and does the call.
func (c *Client) start(ctx context.Context, way TurnMode, req TurnRequest) (*Turn, error) {
	cn, err := c.connected(ctx) // anew: the line may have been long
	if err != nil {
		return nil, err
	}
	if !way.offers(cn.caps) {
		return nil, &UnavailableError{Operation: way.operation()}
	}
	stored, after, err := c.before(ctx, cn, way, req.SessionID)
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
	body, err := req.body(way, cn.caps, history)
	if err != nil {
		return nil, err
	}
	lease, err := newHandle(cn, way, req, after)
	if err != nil {
		return nil, err
	}
	t := newTurn(c, cn, lease, req.OnHandle)
	if t.onHandle != nil {
		t.onHandle(lease)
	}
	if way == ModeRun {
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

// before reads the end of the transcript, so that the turn's own rows are known later: all of it where it is also the
// history that the turn needs.
func (c *Client) before(ctx context.Context, cn *conn, way TurnMode, session string) (transcript, int64, error) {
	switch {
	case way != ModeRun && way != ModeSession, session != "" && !cn.caps.Offers("session_messages"):
		return transcript{}, -1, nil
	case session == "":
		return transcript{}, 0, nil
	}
	stored, err := readTranscript(ctx, cn, session, 1)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound && way == ModeRun {
		return transcript{}, 0, nil // the run makes the session
	}
	if err != nil {
		c.reportNetworkError(ctx, cn, err)
		return transcript{}, 0, err
	}
	return stored, stored.last(), nil
}

// report tells the client of a failure of the route, which the end of ctx is not.
func (c *Client) reportNetworkError(ctx context.Context, cn *conn, err error) {
	var link *networkError
	if errors.As(err, &link) && ctx.Err() == nil {
		c.dropRoute(cn, err)
	}
}

func newHandle(cn *conn, way TurnMode, req TurnRequest, after int64) (TurnHandle, error) {
	endpoint, err := cn.endpoint(way.operation(), []string{"session_id", req.SessionID})
	if err != nil {
		return TurnHandle{}, err
	}
	lease := TurnHandle{Mode: way, Method: endpoint.Method, Endpoint: endpoint.Path, IdempotencyKey: req.IdempotencyKey, ToolEvents: cn.caps.Feature("tool_progress_events"),
		Reasoning: !traits(cn).hermes || cn.caps.Feature("reasoning_streaming"), // other servers have no features, and send it or not
		Images:    len(req.Images), Started: time.Now().UTC().Truncate(time.Millisecond), IdleTimeout: req.IdleTimeout, OutcomeTimeout: req.OutcomeTimeout, After: after, Digest: digest(req.Text)}
	if way == ModeRun || way == ModeSession {
		lease.SessionID = req.SessionID
	}
	if way == ModeResponses {
		lease.PreviousResponseID = req.PreviousResponseID
	}
	if lease.IdempotencyKey == "" {
		lease.IdempotencyKey = newKey()
	}
	if lease.IdleTimeout <= 0 {
		lease.IdleTimeout = defaultIdleTimeout
	}
	if lease.OutcomeTimeout <= 0 {
		lease.OutcomeTimeout = defaultOutcomeTimeout
	}
	return lease.bind(cn), nil
}

// maxRepeats bounds the repeats of the call that starts a turn.
const maxRepeats = 6

// startRun creates the run.
func (t *Turn) startRun(ctx context.Context, cn *conn, body json.RawMessage) error {
	for n := 0; ; n++ {
		id, sent, err := t.createRun(ctx, cn, body)
		if err == nil {
			lease := t.Handle()
			lease.RunID = id
			if lease.SessionID == "" {
				lease.SessionID = id
			}
			t.setHandle(lease)
			t.decoder = &runDecoder{sessionID: lease.SessionID, runID: id}
			t.queue = append(t.queue, Started{Meta: t.newMeta()}) // its events do not say so
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

// again is the route for a repeat. A key that was used counts only where keys do.
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

// createRun does POST /v1/runs once.
func (t *Turn) createRun(ctx context.Context, cn *conn, body json.RawMessage) (id string, sent bool, err error) {
	lease := t.Handle()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var wrote atomic.Bool
	req, err := cn.requestPath(traceSent(ctx, &wrote), lease.Method, lease.Endpoint, nil, body)
	if err != nil {
		return "", false, err
	}
	if traits(cn).idempotent {
		// Only then: net/http repeats a POST with this header by itself, and a gateway that ignores it would run twice.
		req.Header.Set("Idempotency-Key", lease.IdempotencyKey)
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

// doubtful reports whether a turn may have been started though the call failed: the link broke, or a proxy spoke for the
// gateway.
func maybeStarted(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout || refused.Status == http.StatusRequestTimeout
	}
	return true
}

// retried reports whether an error is of the link, so that another try may succeed.
func isNetworkError(err error) bool {
	var link *networkError
	return errors.As(err, &link)
}

// startStream does the call of a way whose answer is the turn itself.
func (t *Turn) startStream(ctx context.Context, cn *conn, body json.RawMessage) error {
	lease := t.Handle()
	switch lease.Mode {
	case ModeSession:
		t.decoder = &sessionDecoder{sessionID: lease.SessionID}
	case ModeResponses:
		t.decoder = &responsesDecoder{hermes: t.traits.hermes}
	default:
		t.decoder = &completionsDecoder{}
	}
	for n := 0; ; n++ {
		stream, sent, err := openStream(ctx, cn, lease.IdleTimeout, func(ctx context.Context) (*http.Request, error) {
			return cn.requestPath(ctx, lease.Method, lease.Endpoint, nil, body)
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
		lease = t.Handle()
	}
}

// wholeDecoder reads the answer of a server that does not stream.
type wholeDecoder interface {
	document(data []byte) []Event
}

// begin takes the answer of a stream. One that is labelled as a stream is looked at when its events are read: it may be long in coming.
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

// document takes an answer that is no stream.
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

// stored reports whether the gateway keeps the turn where it can be looked up.
func (t *Turn) isStored() bool {
	way := t.Mode()
	return way == ModeRun || way == ModeSession
}
