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
	c.report(ctx, cn, err)
	return r, err
}

// settlement is the search for the outcome of a turn whose stream is gone.
type settlement struct {
	began time.Time
	moved time.Time // when something was last seen to happen
	rows  int
	looks int
	told  bool // the reader knows that a question waits
}

func newSettlement() *settlement { return &settlement{began: time.Now(), moved: time.Now()} }

// settle begins the search.
func (t *Turn) settle() {
	if t.settling == nil {
		t.settling = newSettlement()
		t.queue = append(t.queue, Status{Meta: t.here(), Kind: StatusSettling})
	}
}

// look looks once, and waits before it does so again.
func (t *Turn) look(ctx context.Context) error {
	s := t.settling
	if s.looks > 0 {
		if err := retry.Wait(ctx, s.looks-1); err != nil {
			return err
		}
	}
	s.looks++
	o, found, err := t.lookup(ctx, s, func(e Event) { t.queue = append(t.queue, e) })
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !passing(err):
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
	for s := newSettlement(); ; s.looks++ {
		o, found, err := t.lookup(ctx, s, func(Event) {})
		switch {
		case err != nil && ctx.Err() != nil:
			return Outcome{}, ctx.Err()
		case err != nil && !passing(err):
			return Outcome{}, err
		case err == nil && found:
			return o, nil
		}
		if err := retry.Wait(ctx, s.looks); err != nil {
			return Outcome{}, err
		}
	}
}

// lookup asks once. found is false while the turn may still move.
func (t *Turn) lookup(ctx context.Context, s *settlement, emit func(Event)) (o Outcome, found bool, err error) {
	lease := t.Lease()
	patience := lease.Patience
	var record *runRecord
	if lease.RunID != "" && (lease.Way == WayRun || lease.Way == WaySession && t.traits.newer) {
		r, err := t.client.runStatus(ctx, lease.RunID)
		var refused *Error
		switch {
		case err == nil && r.runs():
			s.moved = time.Now()
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
		return t.recorded(record, session, rows), true, nil
	}
	if len(rows) != s.rows {
		s.rows, s.moved = len(rows), time.Now()
	}
	if o, found := t.judge(rows); found {
		o.SessionID = session
		return o, true, nil
	}
	quiet := time.Since(s.moved)
	switch {
	case !readable, known && quiet >= patience, !known && quiet >= lease.Patience/4:
		o = t.seen()
		if t.lost && !known && readable && lease.After >= 0 {
			o = Outcome{State: Absent, Err: ErrCut}
		}
		if parts := spoken(rows); len(parts) > 0 {
			o.Segments = parts
		}
		o.SessionID = session
		return o, true, nil
	}
	return o, false, nil
}

// waiting tells the reader of a question that he may not have seen.
func (t *Turn) waiting(r runRecord, s *settlement, emit func(Event)) {
	if r.Status != "waiting_for_approval" {
		return
	}
	if r.Approval != nil {
		if a, show := t.approvals.ask(r.Approval.approval(), "", true); show {
			emit(ApprovalRequested{Meta: t.here(), Approval: a})
		}
		return
	}
	if !s.told {
		s.told = true
		emit(Status{Meta: t.here(), Kind: StatusWaiting})
	}
}

// rows returns what the session has of this turn; known is whether its message is there at all.
func (t *Turn) rows(ctx context.Context, session string) (rows []storedRow, known, readable bool, err error) {
	if session == "" || !t.stored() {
		return nil, false, false, nil
	}
	cn, err := t.client.connected(ctx)
	if err != nil {
		return nil, false, false, err
	}
	stored, err := readTranscript(ctx, cn, session, 0)
	t.client.report(ctx, cn, err)
	var refused *Error
	if errors.Is(err, ErrUnavailable) || errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, false, false, nil
	}
	if err != nil {
		return nil, false, false, err
	}
	lease := t.Lease()
	rows, known = turnRows(stored.Rows, lease)
	return rows, known, true, nil
}

// turnRows cuts the rows of one turn out of a transcript: those between its message and the next one. A message with images
// is stored with words of the gateway in their place (api-facts §4.8), so there it is the first one after the lease.
func turnRows(all []storedRow, lease Lease) (rows []storedRow, known bool) {
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
func spoken(rows []storedRow) []string {
	var texts []string
	for _, row := range rows {
		if row.spoken() {
			texts = append(texts, row.text())
		}
	}
	return texts
}

// recorded is the outcome of a run that is over.
func (t *Turn) recorded(r *runRecord, session string, rows []storedRow) Outcome {
	o := r.outcome(runStates["run."+r.Status])
	o.SessionID = session
	if o.Segments = spoken(rows); len(o.Segments) == 0 {
		o.Segments = t.seen().Segments
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
func (t *Turn) judge(rows []storedRow) (o Outcome, found bool) {
	if len(rows) == 0 {
		return o, false
	}
	o.Segments = spoken(rows)
	last := rows[len(rows)-1]
	switch {
	case last.Role != "assistant" || last.calls():
		return o, false
	case last.DisplayKind == "failed_turn":
		o.State, o.Err = Failed, &Error{Message: last.text()}
	case last.DisplayKind != "hidden" && last.FinishReason != "":
		o.State, o.Reason = Completed, last.FinishReason
	default:
		o.State, o.Err = Interrupted, ErrCut
		t.mu.Lock()
		if t.stopped {
			o.State, o.Err = Cancelled, nil
		}
		t.mu.Unlock()
	}
	return o, true
}

// seen is the outcome by what the stream gave, where nobody knows better.
func (t *Turn) seen() Outcome {
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
func (t *Turn) mend(ctx context.Context, o *Outcome) {
	if rows, known, _, err := t.rows(ctx, o.SessionID); err == nil && known {
		if parts := spoken(rows); len(parts) > 0 {
			o.Segments = parts
			return
		}
	}
	o.Partial = true
}
