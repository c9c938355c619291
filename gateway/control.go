package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// choices are the answers to an approval (doc/hermes/api.md §6).
var choices = []string{"once", "session", "always", "deny"}

// ApprovalAnswer is an answer to an [Approval].
type ApprovalAnswer struct {
	RequestID string // Approval.ID; empty means the oldest open approval
	Choice    string // once, session (for this turn), always or deny
	All       bool   // answers every open approval of the turn
}

// Answer answers an approval. Answers may come in any order: if the gateway would apply one to an
// older request, it is kept until the older ones are answered, and Answer returns nil.
//
// The first answer counts. A later one, and one that the gateway no longer waits for, returns
// [ErrApprovalClosed]. After any other error the approval can be answered again. Answer may be
// called while Events is read, and after a restart of the program with an ID from before.
func (t *Turn) Answer(ctx context.Context, a ApprovalAnswer) error {
	if !slices.Contains(choices, a.Choice) {
		return fmt.Errorf("gateway: unknown choice %q, use one of %s", a.Choice, strings.Join(choices, ", "))
	}
	if t.isClosed() {
		return ErrClosed
	}
	q, err := t.approvals.record(a)
	if err != nil {
		return err
	}
	if q == nil {
		return t.postAnswer(ctx, a, a.RequestID)
	}
	return t.postDue(ctx, q)
}

// postDue sends the answers that are due. It returns the error of mine if mine is among them.
func (t *Turn) postDue(ctx context.Context, mine *question) (result error) {
	select {
	case <-t.posting:
		defer func() { t.posting <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		q, answer := t.approvals.due()
		if q == nil {
			return result
		}
		err := t.postAnswer(ctx, answer, q.asked.id)
		t.approvals.posted(q, err, q != mine)
		if q == mine {
			result = err
		}
		if err != nil && !errors.Is(err, ErrApprovalClosed) {
			return result
		}
	}
}

// postAnswer sends POST …/approval.
func (t *Turn) postAnswer(ctx context.Context, a ApprovalAnswer, id string) error {
	body := map[string]any{"choice": a.Choice}
	if a.All {
		body["all"] = true
	}
	if id != "" {
		body["request_id"] = id
	}
	err := t.post(ctx, "run_approval", body)
	var refused *Error
	if errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusNotFound) {
		return fmt.Errorf("%w: %w", ErrApprovalClosed, err)
	}
	return err
}

// Stop stops the turn. The reply so far stays in the session. [Ended] follows as an event; its
// state can differ from Cancelled if the turn ended first. A turn that has ended is no error.
//
// Stop returns [ErrUnavailable] for the stream of a session on 0.19, which cannot be stopped.
func (t *Turn) Stop(ctx context.Context) error {
	if t.isClosed() {
		return ErrClosed
	}
	t.mu.Lock()
	mode, over := t.handle.Mode, t.ended != nil
	t.mu.Unlock()
	switch {
	case over:
		return nil
	case mode == ModeRun, mode == ModeSession && t.traits.newer:
		err := t.post(ctx, "run_stop", map[string]any{})
		var refused *Error
		if errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusConflict) {
			return nil
		}
		if err == nil {
			t.markStopped()
		}
		return err
	case mode == ModeSession:
		return &UnavailableError{Operation: "run_stop"}
	}
	t.markStopped()
	t.mu.Lock()
	stream := t.stream
	t.mu.Unlock()
	if stream != nil {
		stream.cancel(ErrClosed) // the reader notices it and ends the turn
	}
	return nil
}

func (t *Turn) markStopped() {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
}

// Steer sends the model a message while the turn runs. The model reads it after the next tool call.
// It needs 0.22, and returns [ErrUnavailable] otherwise. A turn that accepts no more messages is an
// [*Error] with Status 409.
func (t *Turn) Steer(ctx context.Context, text string) error {
	if t.isClosed() {
		return ErrClosed
	}
	if strings.TrimSpace(text) == "" {
		return errors.New("gateway: text to steer the turn with is empty")
	}
	if !t.isStored() {
		return &UnavailableError{Operation: "run_steer"}
	}
	return t.post(ctx, "run_steer", map[string]any{"input": text})
}

func (t *Turn) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// post sends a call about the run of the turn.
func (t *Turn) post(ctx context.Context, operation string, body any) error {
	id := t.Handle().RunID
	if id == "" {
		return fmt.Errorf("%w: the turn has no run, or its ID is not known yet", &UnavailableError{Operation: operation})
	}
	cn, err := t.client.connected(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := cn.request(ctx, operation, []string{"run_id", id}, nil, body)
	if err != nil {
		return err
	}
	err = cn.call(req, nil)
	t.client.reportNetworkError(ctx, cn, err)
	return err
}
