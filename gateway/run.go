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
	way, err := chooseWay(cn.caps, req)
	if err != nil {
		return nil, err
	}
	if err := req.check(traits(cn).hosts); err != nil {
		return nil, err
	}
	place, err := c.enter(ctx, cn, way, req.SessionID)
	if err != nil {
		return nil, err
	}
	t, err := c.start(ctx, way, req)
	if err != nil {
		place.leave("")
		return nil, err
	}
	t.place = place
	return t, nil
}

// enter takes the place in the line of a session, where one is needed, and waits for a run that was left in it.
func (c *Client) enter(ctx context.Context, cn *conn, way Way, session string) (*sessionPlace, error) {
	if traits(cn).newer || session == "" || way != WayRun && way != WaySession {
		return nil, nil
	}
	place, err := c.turns.enter(ctx, session)
	if err != nil {
		return nil, err
	}
	for n := 0; place.left() != ""; n++ {
		status, err := c.runStatus(ctx, place.left())
		var refused *Error
		switch {
		case err == nil && status.over(), errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			place.settled()
			continue
		case err != nil && !passing(err):
			place.leave(place.left())
			return nil, err
		}
		if err := retry.Wait(ctx, n); err != nil {
			place.leave(place.left())
			return nil, err
		}
	}
	return place, nil
}

// start makes the lease and does the call.
func (c *Client) start(ctx context.Context, way Way, req TurnRequest) (*Turn, error) {
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
	lease, err := newLease(cn, way, req, after)
	if err != nil {
		return nil, err
	}
	t := newTurn(c, cn, lease, req.OnLease)
	if t.onLease != nil {
		t.onLease(lease)
	}
	if way == WayRun {
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
func (c *Client) before(ctx context.Context, cn *conn, way Way, session string) (transcript, int64, error) {
	switch {
	case way != WayRun && way != WaySession, session != "" && !cn.caps.Offers("session_messages"):
		return transcript{}, -1, nil
	case session == "":
		return transcript{}, 0, nil
	}
	stored, err := readTranscript(ctx, cn, session, 1)
	var refused *Error
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound && way == WayRun {
		return transcript{}, 0, nil // the run makes the session
	}
	if err != nil {
		c.report(ctx, cn, err)
		return transcript{}, 0, err
	}
	return stored, stored.last(), nil
}

// report tells the client of a failure of the route, which the end of ctx is not.
func (c *Client) report(ctx context.Context, cn *conn, err error) {
	var link *linkError
	if errors.As(err, &link) && ctx.Err() == nil {
		c.failed(cn, err)
	}
}

func newLease(cn *conn, way Way, req TurnRequest, after int64) (Lease, error) {
	endpoint, err := cn.endpoint(way.operation(), []string{"session_id", req.SessionID})
	if err != nil {
		return Lease{}, err
	}
	lease := Lease{Way: way, Method: endpoint.Method, Endpoint: endpoint.Path, Key: req.Key, ToolEvents: cn.caps.Feature("tool_progress_events"),
		Reasoning: !traits(cn).hosts || cn.caps.Feature("reasoning_streaming"), // other servers have no features, and send it or not
		Images:    len(req.Images), Started: time.Now().UTC().Truncate(time.Millisecond), Idle: req.Idle, Patience: req.Patience, After: after, Digest: digest(req.Text)}
	if way == WayRun || way == WaySession {
		lease.SessionID = req.SessionID
	}
	if way == WayResponses {
		lease.Chain = req.Previous
	}
	if lease.Key == "" {
		lease.Key = newKey()
	}
	if lease.Idle <= 0 {
		lease.Idle = defaultIdle
	}
	if lease.Patience <= 0 {
		lease.Patience = defaultPatience
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
			lease := t.Lease()
			lease.RunID = id
			if lease.SessionID == "" {
				lease.SessionID = id
			}
			t.setLease(lease)
			t.decoder = &runDecoder{sessionID: lease.SessionID, runID: id}
			t.queue = append(t.queue, Started{Meta: t.here()}) // its events do not say so
			return nil
		}
		t.client.report(ctx, cn, err)
		keyed := traits(cn).keyed
		switch {
		case sent && !doubtful(err):
			return err
		case sent && !keyed:
			if ctx.Err() != nil {
				return fmt.Errorf("it is not known whether the turn was started: %w", ctx.Err())
			}
			t.decoder, t.lost = &runDecoder{sessionID: t.Lease().SessionID}, true
			t.settle()
			return nil
		case !sent && (!retried(err) || ctx.Err() != nil):
			return err
		case n == maxRepeats:
			return fmt.Errorf("it is not known whether the turn was started, ask again with its key: %w", err)
		}
		if err := retry.Wait(ctx, n); err != nil {
			return err
		}
		if cn, err = t.again(ctx, keyed && sent); err != nil {
			return err
		}
	}
}

// again is the route for a repeat. A key that was used counts only where keys do.
func (t *Turn) again(ctx context.Context, keyed bool) (*conn, error) {
	cn, err := t.client.connected(ctx)
	if err != nil {
		return nil, err
	}
	if keyed && !traits(cn).keyed {
		return nil, &UnavailableError{Operation: "runs_idempotency"}
	}
	t.setLease(t.Lease().bind(cn))
	return cn, nil
}

// createRun does POST /v1/runs once.
func (t *Turn) createRun(ctx context.Context, cn *conn, body json.RawMessage) (id string, sent bool, err error) {
	lease := t.Lease()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var wrote atomic.Bool
	req, err := cn.requestPath(traceSent(ctx, &wrote), lease.Method, lease.Endpoint, nil, body)
	if err != nil {
		return "", false, err
	}
	if traits(cn).keyed {
		// Only then: net/http repeats a POST with this header by itself, and a gateway that ignores it would run twice.
		req.Header.Set("Idempotency-Key", lease.Key)
	}
	var reply struct {
		RunID string `json:"run_id"`
	}
	if err := cn.call(req, &reply); err != nil {
		return "", wrote.Load(), err
	}
	if reply.RunID == "" {
		return "", true, errors.New("the gateway's answer names no run")
	}
	return reply.RunID, true, nil
}

// doubtful reports whether a turn may have been started though the call failed: the link broke, or a proxy spoke for the
// gateway.
func doubtful(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status == http.StatusBadGateway || refused.Status == http.StatusGatewayTimeout || refused.Status == http.StatusRequestTimeout
	}
	return true
}

// retried reports whether an error is of the link, so that another try may succeed.
func retried(err error) bool {
	var link *linkError
	return errors.As(err, &link)
}

// startStream does the call of a way whose answer is the turn itself.
func (t *Turn) startStream(ctx context.Context, cn *conn, body json.RawMessage) error {
	lease := t.Lease()
	switch lease.Way {
	case WaySession:
		t.decoder = &sessionDecoder{sessionID: lease.SessionID}
	case WayResponses:
		t.decoder = &responsesDecoder{hermes: t.traits.hosts}
	default:
		t.decoder = &completionsDecoder{}
	}
	for n := 0; ; n++ {
		stream, sent, err := openStream(ctx, cn, lease.Idle, func(ctx context.Context) (*http.Request, error) {
			return cn.requestPath(ctx, lease.Method, lease.Endpoint, nil, body)
		})
		if err == nil {
			return t.begin(stream, cn)
		}
		t.client.report(ctx, cn, err)
		switch {
		case sent && doubtful(err) && ctx.Err() == nil && t.stored():
			t.lost = true
			t.settle()
			return nil
		case sent, !retried(err), ctx.Err() != nil, n == 2:
			return err
		}
		if err := retry.Wait(ctx, n); err != nil {
			return err
		}
		if cn, err = t.again(ctx, false); err != nil {
			return err
		}
		lease = t.Lease()
	}
}

// wholeDecoder reads the answer of a server that does not stream.
type wholeDecoder interface {
	document(data []byte) []Event
}

// begin takes the answer of a stream. One that is labelled as a stream is looked at when its events are read: it may be long in coming.
func (t *Turn) begin(s *turnStream, cn *conn) error {
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
	t.keep(s, cn)
	return nil
}

// document takes an answer that is no stream.
func (t *Turn) document(data []byte) error {
	d, ok := t.decoder.(wholeDecoder)
	if !ok {
		return errors.New("the gateway's answer is no stream of events")
	}
	if t.queue = d.document(data); len(t.queue) == 0 {
		return errors.New("the gateway's answer cannot be read")
	}
	return nil
}

// stored reports whether the gateway keeps the turn where it can be looked up.
func (t *Turn) stored() bool {
	way := t.Way()
	return way == WayRun || way == WaySession
}
