package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// choices of an approval (api-facts §6).
var choices = []string{"once", "session", "always", "deny"}

// ApprovalAnswer answers an [Approval].
type ApprovalAnswer struct {
	RequestID string // Approval.ID; empty is the oldest that is open
	Choice    string // once, session (this turn), always, deny
	All       bool   // everything that waits in this turn
}

// Answer answers an approval. An answer may be given in any order: where the gateway hands it to the oldest question, it is
// kept until the older ones are answered, and nil says that it is kept. The first answer counts: a later one, and one that
// nobody waits for any more, is [ErrLate]. After another error the same question may be answered again. It may be called
// beside Events, and after a restart of the program with an id from before it.
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

// postDue gives the gateway the answers whose turn it is. The error is that of mine, where mine was among them.
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

// postAnswer does POST …/approval.
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

// Stop ends the turn; what there was of the reply stays in the session. The [Ended] follows as an event, and may be another
// than Cancelled where the turn was done first. A turn that is over already is no error. The stream of a session on 0.19
// cannot be stopped: [ErrUnavailable].
func (t *Turn) Stop(ctx context.Context) error {
	if t.isClosed() {
		return ErrClosed
	}
	t.mu.Lock()
	way, over := t.handle.Mode, t.ended != nil
	t.mu.Unlock()
	switch {
	case over:
		return nil
	case way == ModeRun, way == ModeSession && t.traits.newer:
		err := t.post(ctx, "run_stop", map[string]any{})
		var refused *Error
		if errors.As(err, &refused) && (refused.Status == http.StatusNotFound || refused.Status == http.StatusConflict) {
			return nil
		}
		if err == nil {
			t.markStopped()
		}
		return err
	case way == ModeSession:
		return &UnavailableError{Operation: "run_stop"}
	}
	t.markStopped()
	t.mu.Lock()
	stream := t.stream
	t.mu.Unlock()
	if stream != nil {
		stream.cancel(ErrClosed) // the reader notices, and ends the turn
	}
	return nil
}

func (t *Turn) markStopped() {
	t.mu.Lock()
	t.stopped = true
	t.mu.Unlock()
}

// Steer gives the model a word while the turn runs, which it reads after the next tool call. Only 0.22 and later can:
// else [ErrUnavailable]. A turn that takes no more is an [*Error] of status 409.
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

// post does a call on the run of the turn.
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
