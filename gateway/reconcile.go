package gateway

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"
)

// runRecord is GET /v1/runs/{id} (api-facts §5).
type runRecord struct {
	turnFrame
	Approval *turnFrame `json:"approval"`
}

// over reports whether the run came to its end.
func (r runRecord) over() bool {
	_, over := runStates["run."+r.Status]
	return over
}

// runs reports whether the run is on its way. A state that this package does not know is neither.
func (r runRecord) runs() bool {
	return slices.Contains([]string{"queued", "started", "running", "waiting_for_approval", "stopping"}, r.Status)
}

// runStatus asks for the state of a run.
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

// settlement is the search for the outcome of a turn whose stream is gone.
type reconciliation struct {
	began      time.Time
	progressed time.Time // when something was last seen to happen
	rows       int
	polls      int
	reported   bool // the reader knows that a question waits
}

func newReconciliation() *reconciliation {
	return &reconciliation{began: time.Now(), progressed: time.Now()}
}

// settle begins the search.
func (t *Turn) startReconcile() {
	if t.reconciling == nil {
		t.reconciling = newReconciliation()
		t.queue = append(t.queue, Status{Meta: t.newMeta(), Kind: StatusSettling})
	}
}

// look looks once, and waits before it does so again.
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

// Reconcile asks the gateway what became of the turn, and waits while it runs: the state of the run, and the rows that the
// session has of it. An outcome that was [Unknown] may be known later. ctx bounds the wait; the errors are those of Events,
// which may not be read meanwhile.
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

// lookup asks once. found is false while the turn may still move.
func (t *Turn) lookup(ctx context.Context, s *reconciliation, emit func(Event)) (o Outcome, found bool, err error) {
	lease := t.Handle()
	patience := lease.OutcomeTimeout
	var record *runRecord
	if lease.RunID != "" && (lease.Mode == ModeRun || lease.Mode == ModeSession && t.traits.newer) {
		r, err := t.client.runStatus(ctx, lease.RunID)
		var refused *Error
		switch {
		case err == nil && r.runs():
			s.progressed = time.Now()
			t.waiting(r, s, emit)
			return o, false, nil
		case err == nil && r.over():
			record = &r
		case errors.As(err, &refused) && refused.Status == http.StatusNotFound:
			// The gateway was started anew, or the record is too old. A gateway that was asked to end goes on for about 20 s
			// and may yet store the answer (api-facts §4.6), so the session is looked at for longer than that.
			patience /= 4
		case err == nil, errors.Is(err, ErrUnavailable):
			// The state is of no use here: the session may know.
		default:
			return o, false, err
		}
	}
	session := lease.SessionID
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
	case !readable, known && quiet >= patience, !known && quiet >= lease.OutcomeTimeout/4:
		o = t.streamedOutcome()
		if t.unconfirmed && !known && readable && lease.After >= 0 {
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

// waiting tells the reader of a question that he may not have seen.
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

// rows returns what the session has of this turn; known is whether its message is there at all.
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
	lease := t.Handle()
	rows, known = turnRows(stored.Rows, lease)
	return rows, known, true, nil
}

// turnRows cuts the rows of one turn out of a transcript: those between its message and the next one. A message with images
// is stored with words of the gateway in their place (api-facts §4.8), so there it is the first one after the lease.
func turnRows(all []storedRow, lease TurnHandle) (rows []storedRow, known bool) {
	first := -1
	for i, row := range all {
		late := lease.After < 0 || row.number() > lease.After
		if row.Role == "user" && late && (lease.Images > 0 || digest(row.text()) == lease.Digest) {
			first = i
			if lease.After >= 0 {
				break // else the newest that reads so
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

// spoken is the text of rows.
func replyTexts(rows []storedRow) []string {
	var texts []string
	for _, row := range rows {
		if row.isReply() {
			texts = append(texts, row.text())
		}
	}
	return texts
}

// recorded is the outcome of a run that is over.
func (t *Turn) outcomeFromRun(r *runRecord, session string, rows []storedRow) Outcome {
	o := r.outcome(runStates["run."+r.Status])
	o.SessionID = session
	if o.Segments = replyTexts(rows); len(o.Segments) == 0 {
		o.Segments = t.streamedOutcome().Segments
	}
	if out := r.Output; out != "" && o.State == Completed {
		// The end of the reply is in the record; what stood before it is not.
		switch n := len(o.Segments); {
		case n == 0, len(rows) == 0:
			o.Segments = []string{out}
		case o.Segments[n-1] != out:
			o.Segments = append(o.Segments, out)
		}
	}
	return o
}

// judge says how a turn ended by its rows alone; found is false where they do not tell (api-facts §4.5, §4.6).
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

// seen is the outcome by what the stream gave, where nobody knows better.
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

// mend puts the text of an outcome right where events were missed.
func (t *Turn) repairText(ctx context.Context, o *Outcome) {
	if rows, known, _, err := t.rows(ctx, o.SessionID); err == nil && known {
		if parts := replyTexts(rows); len(parts) > 0 {
			o.Segments = parts
			return
		}
	}
	o.Partial = true
}
