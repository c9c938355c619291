package gateway

import (
	"context"
	"errors"
	"net/http"
)

// ResumeTurn comes back to a turn, after a restart of the program or on another device. position is Meta.Position of the last
// event that was handled, or empty: a gateway that replays (0.22) goes on after it, and begins anew without one. Others
// cannot: the outcome is waited for and comes as [Ended]. So it is with the other ways than [WayRun]. The route may be
// another than that of the lease, for it leads to the same gateway.
//
// An approval that was told of before is answered by its id all the same. Where the events cannot be had, 0.22 tells of an
// open one again under the same id; of 0.19 comes a [Status] of StatusWaiting, and an answer without RequestID goes to the
// oldest. A lease without RunID is of a turn whose start was not confirmed:
// its Ended tells what the gateway stored of it, with [Absent] for nothing.
func (c *Client) ResumeTurn(ctx context.Context, lease TurnHandle, position string) (*Turn, error) {
	if lease.Mode.operation() == "" || lease.IdleTimeout <= 0 || lease.OutcomeTimeout <= 0 {
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
	place, err := c.acquireSlot(ctx, cn, lease.Mode, lease.SessionID)
	if err != nil {
		return nil, err
	}
	t := newTurn(c, cn, lease.bind(cn), nil)
	t.slot = place
	if lease.Mode != ModeRun || lease.RunID == "" || !t.traits.newer {
		t.decoder = &runDecoder{sessionID: lease.SessionID, runID: lease.RunID}
		t.unconfirmed = lease.RunID == ""
		t.startReconcile()
		return t, nil
	}
	d := &runDecoder{sessionID: lease.SessionID, runID: lease.RunID}
	d.text.current, d.text.has, d.text.tool = at.segment, at.has, at.tool
	t.decoder, t.position, t.gap = d, at, at.seq >= 0
	return t, nil
}

// goOn opens the events of a run, or looks up what became of the turn.
func (t *Turn) advance(ctx context.Context) error {
	if t.reconciling != nil {
		return t.poll(ctx)
	}
	if t.tries > 0 {
		if err := retry.Wait(ctx, t.tries-1); err != nil {
			return err
		}
	}
	if t.tries > 2 { // streams that give nothing: is the run over?
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
	lease := t.Handle().bind(cn)
	t.setHandle(lease)
	if t.opened && !t.traits.newer {
		t.startReconcile() // a second reader would take every other event from the first
		return nil
	}
	t.opened = true
	stream, _, err := openStream(ctx, cn, lease.IdleTimeout, func(ctx context.Context) (*http.Request, error) {
		req, err := cn.request(ctx, "run_events", []string{"run_id", lease.RunID}, nil, nil)
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
		t.postDue(ctx, nil) // answers that did not get through before
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

// delay counts a failure that passes; another is the reader's.
func (t *Turn) delay(err error) error {
	if !isTemporary(err) {
		return err
	}
	t.tries++
	return nil
}

// passing reports whether an error says nothing of the turn and may be gone soon: no route, a broken link, a gateway that
// is full, starts or stops. A refused credential and another gateway do not pass.
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
