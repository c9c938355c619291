package gateway

import (
	"context"
	"errors"
	"net/http"
)

// ResumeTurn continues a turn after a restart of the program, or on another device. handle is the
// last one that [TurnRequest.OnHandle] got. position is Meta.Position of the last event that was
// processed, or empty. The turn may use another route than before.
//
// A run on a gateway that replays events (0.22) continues after position, or from its first event
// without one. In all other cases ResumeTurn waits for the outcome and emits it as [Ended]. If the
// start of the turn was not confirmed (a handle without RunID), Ended says what the gateway stored
// of it: [Absent] means nothing.
//
// Approvals keep their IDs. If the events are not available, 0.22 repeats an open request under the
// same ID. On 0.19 the turn emits a [Status] of kind [StatusWaiting] instead, and an answer without
// RequestID goes to the oldest request.
//
// The errors are those of [Client.StartTurn], and one for a malformed handle or position.
func (c *Client) ResumeTurn(ctx context.Context, handle TurnHandle, position string) (*Turn, error) {
	if handle.Mode.operation() == "" || handle.IdleTimeout <= 0 || handle.OutcomeTimeout <= 0 {
		return nil, errors.New("gateway: malformed turn handle: its mode or timeouts are missing")
	}
	at, err := parsePosition(position)
	if err != nil {
		return nil, err
	}
	cn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	slot, err := c.acquireSlot(ctx, cn, handle.Mode, handle.SessionID)
	if err != nil {
		return nil, err
	}
	t := newTurn(c, cn, handle.bind(cn), nil)
	t.slot = slot
	if handle.Mode != ModeRun || handle.RunID == "" || !t.traits.newer {
		t.decoder = &runDecoder{sessionID: handle.SessionID, runID: handle.RunID}
		t.unconfirmed = handle.RunID == ""
		t.startReconcile()
		return t, nil
	}
	d := &runDecoder{sessionID: handle.SessionID, runID: handle.RunID}
	d.text.current, d.text.has, d.text.tool = at.segment, at.has, at.tool
	t.decoder, t.position, t.gap = d, at, at.seq >= 0
	return t, nil
}

// advance opens the events of a run, or looks up the outcome.
func (t *Turn) advance(ctx context.Context) error {
	if t.reconciling != nil {
		return t.poll(ctx)
	}
	if t.tries > 0 {
		if err := retry.Wait(ctx, t.tries-1); err != nil {
			return err
		}
	}
	if t.tries > 2 { // streams without events: has the run ended?
		status, err := t.client.runStatus(ctx, t.Handle().RunID)
		if err == nil && status.over() {
			t.startReconcile()
			return nil
		}
	}
	cn, err := t.client.connected(ctx)
	if err != nil {
		return t.delay(err)
	}
	handle := t.Handle().bind(cn)
	t.setHandle(handle)
	if t.opened && !t.traits.newer {
		t.startReconcile() // a second reader would take every other event from the first
		return nil
	}
	t.opened = true
	stream, _, err := openStream(ctx, cn, handle.IdleTimeout, func(ctx context.Context) (*http.Request, error) {
		req, err := cn.request(ctx, "run_events", []string{"run_id", handle.RunID}, nil, nil)
		if err == nil && t.position.seq >= 0 {
			req.Header.Set("Last-Event-ID", t.position.number())
		}
		return req, err
	})
	if err == nil && !stream.sse {
		document := false
		if document, err = stream.document(); document {
			err = errNotStream
		}
		if err != nil {
			stream.close()
		}
	}
	if err == nil {
		t.setStream(stream, cn)
		_ = t.postDue(ctx, nil) // answers that could not be sent before; posted records what failed
		return nil
	}
	t.client.reportNetworkError(ctx, cn, err)
	var refused *Error
	if ctx.Err() == nil && (errors.As(err, &refused) && refused.Status == http.StatusNotFound || !isTemporary(err)) && !errors.Is(err, ErrSignIn) {
		t.startReconcile()
		return nil
	}
	return t.delay(err)
}

// delay counts a temporary failure. It returns every other error to the reader.
func (t *Turn) delay(err error) error {
	if !isTemporary(err) {
		return err
	}
	t.tries++
	return nil
}

// isTemporary reports whether an error may soon be gone and says nothing about the turn: no route,
// a network error, a gateway that is full, starting or stopping. A refused credential and another
// gateway are not temporary.
func isTemporary(err error) bool {
	var refused *Error
	switch {
	case errors.Is(err, ErrSignIn), errors.Is(err, ErrIdentity), errors.Is(err, ErrClosed), errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &refused):
		return refused.Status >= 500 || refused.Status == http.StatusTooManyRequests || refused.Status == http.StatusRequestTimeout
	}
	return errors.Is(err, ErrNoRoute) || isNetworkError(err)
}
