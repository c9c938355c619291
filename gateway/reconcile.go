package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// runRecord is the response of GET /v1/runs/{id} (doc/hermes/api.md §5).
type runRecord struct {
	turnFrame
	Approval *turnFrame `json:"approval"`
}

// over reports whether the run has ended.
func (r runRecord) over() bool {
	_, over := runStates["run."+r.Status]
	return over
}

// runs reports whether the run is in progress. An unknown status is neither over nor in progress.
func (r runRecord) runs() bool {
	return slices.Contains([]string{"queued", "started", "running", "waiting_for_approval", "stopping"}, r.Status)
}

// runStatus asks for the status of a run.
func (c *Client) runStatus(ctx context.Context, id string) (runRecord, error) {
	var r runRecord
	cn, err := c.connected(ctx)
	if err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := cn.request(ctx, "run_status", []string{"run_id", id}, nil, nil)
	if err != nil {
		return r, err
	}
	err = cn.call(req, &r)
	c.reportNetworkError(ctx, cn, err)
	return r, err
}

// reconciliation is the search for the outcome of a turn whose stream is gone.
type reconciliation struct {
	began      time.Time
	progressed time.Time // when something last changed
	rows       int
	polls      int
	reported   bool // the reader was told that the run waits for an approval
}

func newReconciliation() *reconciliation {
	return &reconciliation{began: time.Now(), progressed: time.Now()}
}

// startReconcile starts the search.
func (t *Turn) startReconcile() {
	if t.reconciling == nil {
		t.reconciling = newReconciliation()
		t.queue = append(t.queue, Status{Meta: t.newMeta(), Kind: StatusSettling})
	}
}

// poll searches once. It waits first if it is not the first time.
func (t *Turn) poll(ctx context.Context) error {
	s := t.reconciling
	if s.polls > 0 {
		if err := retry.Wait(ctx, s.polls-1); err != nil {
			return err
		}
	}
	s.polls++
	o, found, err := t.lookup(ctx, s, func(e Event) { t.queue = append(t.queue, e) })
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !isTemporary(err):
		return err
	case err == nil && found:
		t.end(o)
	}
	return nil
}

// Reconcile asks the gateway for the outcome of the turn: the status of its run, and the rows that
// its session stored. It waits while the turn runs. It can find the outcome of a turn that ended as
// [Unknown].
//
// The errors are those of [Turn.Events], which must not be read at the same time. ctx limits the
// wait.
func (t *Turn) Reconcile(ctx context.Context) (Outcome, error) {
	select {
	case <-t.reader:
		defer func() { t.reader <- struct{}{} }()
	default:
		return Outcome{}, errReading
	}
	for s := newReconciliation(); ; s.polls++ {
		o, found, err := t.lookup(ctx, s, func(Event) {})
		switch {
		case err != nil && ctx.Err() != nil:
			return Outcome{}, ctx.Err()
		case err != nil && !isTemporary(err):
			return Outcome{}, err
		case err == nil && found:
			return o, nil
		}
		if err := retry.Wait(ctx, s.polls); err != nil {
			return Outcome{}, err
		}
	}
}

// lookup searches once. found is false while the turn may still change.
func (t *Turn) lookup(ctx context.Context, s *reconciliation, emit func(Event)) (o Outcome, found bool, err error) {
	handle := t.Handle()
	timeout := handle.OutcomeTimeout
	var record *runRecord
	if handle.RunID != "" && (handle.Mode == ModeRun || handle.Mode == ModeSession && t.traits.newer) {
		r, err := t.client.runStatus(ctx, handle.RunID)
		var refused *Error
		switch {
		case err == nil && r.runs():
			s.progressed = time.Now()
			t.waiting(r, s, emit)
			return o, false, nil
		case err == nil && r.over():
			record = &r
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			// The gateway was restarted, or deleted the record. A gateway that shuts down works on
			// for about 20 seconds and may still store the reply (doc/hermes/api.md §4.6), so the
			// search in the session lasts longer than that.
			timeout /= 4
		case err == nil, errors.Is(err, ErrUnavailable):
			// The status does not help: the session may.
		default:
			return o, false, err
		}
	}
	session := handle.SessionID
	if record != nil && record.SessionID != "" {
		session = record.SessionID
	}
	rows, known, readable, err := t.rows(ctx, session)
	if err != nil {
		return o, false, err
	}
	if record != nil {
		return t.outcomeFromRun(record, session, rows), true, nil
	}
	if len(rows) != s.rows {
		s.rows, s.progressed = len(rows), time.Now()
	}
	if o, found := t.outcomeFromRows(rows); found {
		o.SessionID = session
		return o, true, nil
	}
	quiet := time.Since(s.progressed)
	switch {
	case !readable, known && quiet >= timeout, !known && quiet >= handle.OutcomeTimeout/4:
		o = t.streamedOutcome()
		if t.unconfirmed && !known && readable && handle.After >= 0 {
			o = Outcome{State: Absent, Err: ErrStreamBroken}
		}
		if parts := replyTexts(rows); len(parts) > 0 {
			o.Segments = parts
		}
		o.SessionID = session
		return o, true, nil
	}
	return o, false, nil
}

// waiting reports an approval request that the reader may not have seen.
func (t *Turn) waiting(r runRecord, s *reconciliation, emit func(Event)) {
	if r.Status != "waiting_for_approval" {
		return
	}
	if r.Approval != nil {
		if a, show := t.approvals.add(r.Approval.approval(), "", true); show {
			emit(ApprovalRequested{Meta: t.newMeta(), Approval: a})
		}
		return
	}
	if !s.reported {
		s.reported = true
		emit(Status{Meta: t.newMeta(), Kind: StatusWaiting})
	}
}

// rows returns what the session stored of this turn. known is whether the message of the turn is
// there, readable whether the session can be read.
func (t *Turn) rows(ctx context.Context, session string) (rows []storedRow, known, readable bool, err error) {
	if session == "" || !t.isStored() {
		return nil, false, false, nil
	}
	cn, err := t.client.connected(ctx)
	if err != nil {
		return nil, false, false, err
	}
	stored, err := readTranscript(ctx, cn, session, 0)
	t.client.reportNetworkError(ctx, cn, err)
	var refused *Error
	if errors.Is(err, ErrUnavailable) || errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, false, false, nil
	}
	if err != nil {
		return nil, false, false, err
	}
	handle := t.Handle()
	rows, known = turnRows(stored.Rows, handle)
	return rows, known, true, nil
}

// turnRows returns the rows of one turn in a transcript: those between its message and the next
// one. The gateway replaces the images of a message with words (doc/hermes/api.md §4.8), so a
// message with images is the first one after the handle was made.
func turnRows(all []storedRow, handle TurnHandle) (rows []storedRow, known bool) {
	first := -1
	for i, row := range all {
		late := handle.After < 0 || row.number() > handle.After
		if row.Role == "user" && late && (handle.Images > 0 || digest(row.text()) == handle.Digest) {
			first = i
			if handle.After >= 0 {
				break // otherwise the newest one with this text counts
			}
		}
	}
	if first < 0 {
		return nil, false
	}
	rows = all[first+1:]
	if next := slices.IndexFunc(rows, func(r storedRow) bool { return r.Role == "user" }); next >= 0 {
		rows = rows[:next]
	}
	return rows, true
}

// replyTexts returns the texts of the rows that belong to the reply.
func replyTexts(rows []storedRow) []string {
	var texts []string
	for _, row := range rows {
		if row.isReply() {
			texts = append(texts, row.text())
		}
	}
	return texts
}

// outcomeFromRun returns the outcome of a run that is over.
func (t *Turn) outcomeFromRun(r *runRecord, session string, rows []storedRow) Outcome {
	o := r.outcome(runStates["run."+r.Status])
	o.SessionID = session
	if o.Segments = replyTexts(rows); len(o.Segments) == 0 {
		o.Segments = t.streamedOutcome().Segments
	}
	if out := r.Output; out != "" && o.State == Completed {
		// The record holds only the end of the reply, not the text before it.
		switch n := len(o.Segments); {
		case n == 0, len(rows) == 0:
			o.Segments = []string{out}
		case o.Segments[n-1] != out:
			o.Segments = append(o.Segments, out)
		}
	}
	return o
}

// outcomeFromRows tells from its rows how a turn ended. found is false if they do not tell
// (doc/hermes/api.md §4.5, §4.6).
func (t *Turn) outcomeFromRows(rows []storedRow) (o Outcome, found bool) {
	if len(rows) == 0 {
		return o, false
	}
	o.Segments = replyTexts(rows)
	last := rows[len(rows)-1]
	switch {
	case last.Role != "assistant" || last.calls():
		return o, false
	case last.DisplayKind == "failed_turn":
		o.State, o.Err = Failed, &Error{Message: last.text()}
	case last.DisplayKind != "hidden" && last.FinishReason != "":
		o.State, o.FinishReason = Completed, last.FinishReason
	default:
		o.State, o.Err = Interrupted, ErrStreamBroken
		t.mu.Lock()
		if t.stopped {
			o.State, o.Err = Cancelled, nil
		}
		t.mu.Unlock()
	}
	return o, true
}

// streamedOutcome returns the outcome according to the stream, for when nothing else is known.
func (t *Turn) streamedOutcome() Outcome {
	t.mu.Lock()
	ended := t.ended
	t.mu.Unlock()
	if ended != nil {
		return ended.Outcome
	}
	o, _ := t.decoder.end()
	return o
}

// repairText replaces the text of an outcome with the stored one after events were missed.
func (t *Turn) repairText(ctx context.Context, o *Outcome) {
	if rows, known, _, err := t.rows(ctx, o.SessionID); err == nil && known {
		if parts := replyTexts(rows); len(parts) > 0 {
			o.Segments = parts
			return
		}
	}
	o.Partial = true
}
