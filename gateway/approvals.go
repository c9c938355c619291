package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// approvalKey identifies an approval at the gateway: an ID that may be empty or used twice, and the
// time of the request.
type approvalKey struct {
	id string
	at float64
}

// approvals are the approval requests of one turn, in the order they were made. A gateway without
// IDs, or with one ID for two requests, applies an answer to the oldest request. So an answer to a
// later one waits here until its turn comes.
type approvals struct {
	mu    sync.Mutex
	list  []*question
	tools int // tools that run now: an approval never outlives its tool
}

type question struct {
	id     string // as this package numbers it
	asked  approvalKey
	offers []string
	shown  bool
	answer *ApprovalAnswer
	sent   bool // the answer is at the gateway, or on its way
	closed bool // answered, or the gateway no longer waits for it
	told   bool // its ApprovalAnswered was emitted
}

// localIDPrefix starts the IDs that this package makes up.
const localIDPrefix = "approval-"

// add stores a request and assigns its ID. It returns false if the request need not be shown,
// because it was shown before.
func (b *approvals) add(a Approval, position string, show bool) (Approval, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, q := range b.list {
		if q.asked == a.asked && a.asked != (approvalKey{}) {
			a.ID = q.id
			first := show && !q.shown
			q.shown = q.shown || show
			return a, first
		}
	}
	a.ID = a.asked.id
	if a.ID == "" || b.find(a.ID) != nil {
		if position == "" {
			position = fmt.Sprintf("n%d", len(b.list)+1)
		}
		a.ID = localIDPrefix + position
		for n := 2; b.find(a.ID) != nil; n++ {
			a.ID = fmt.Sprintf("%s%s-%d", localIDPrefix, position, n)
		}
	}
	b.list = append(b.list, &question{id: a.ID, asked: a.asked, offers: a.Choices, shown: show})
	return a, show
}

func (b *approvals) find(id string) *question {
	for _, q := range b.list {
		if q.id == id {
			return q
		}
	}
	return nil
}

// record stores an answer. It returns nil if the request is unknown, as after a restart of the
// program: the answer then names the request to the gateway itself.
func (b *approvals) record(a ApprovalAnswer) (*question, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.find(a.RequestID)
	if a.RequestID == "" {
		for _, o := range b.list {
			if !o.closed && o.answer == nil {
				q = o
				break
			}
		}
	}
	switch {
	case q == nil && strings.HasPrefix(a.RequestID, localIDPrefix):
		return nil, ErrApprovalClosed
	case q == nil:
		return nil, nil
	case q.closed && !q.told && q.answer == nil && q.asked.id != "":
		q.closed = false // closing it was only a conclusion from the tools: let the gateway decide
	case q.closed, q.answer != nil:
		return nil, ErrApprovalClosed
	}
	if len(q.offers) > 0 && !slices.Contains(q.offers, a.Choice) {
		return nil, fmt.Errorf("gateway: choice %q is not offered for this approval, use one of %s", a.Choice, strings.Join(q.offers, ", "))
	}
	q.answer = &a
	return q, nil
}

// due returns the next request whose answer can be sent now, and marks it as sent. It returns nil
// if no answer is due.
func (b *approvals) due() (*question, ApprovalAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.list {
		if q.answer == nil || q.sent || q.closed {
			continue
		}
		waits := slices.ContainsFunc(b.list[:i], func(o *question) bool {
			return !o.closed && !o.sent && (q.asked.id == "" || q.asked.id == o.asked.id)
		})
		if !waits || q.answer.All {
			q.sent = true
			return q, *q.answer
		}
	}
	return nil, ApprovalAnswer{}
}

// posted records how the gateway took the answer to q. An answer that did not arrive is kept if
// kept is true, because no caller waits for it. Otherwise the request can be answered again.
func (b *approvals) posted(q *question, err error, kept bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := q.answer != nil && q.answer.All
	switch {
	case err == nil:
		q.closed = true
		for _, o := range b.list {
			o.closed = o.closed || all
		}
	case errors.Is(err, ErrApprovalClosed):
		q.closed, q.told = true, true
	case kept && isTemporary(err):
		q.sent = false
	default:
		q.sent, q.answer = false, nil
	}
}

// resolved records an answer that the stream reports, and returns the IDs of the requests that it
// was for.
func (b *approvals) resolved(choice string, count int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	take := func(ok func(*question) bool) {
		for _, q := range b.list {
			if len(ids) < max(count, 1) && !q.told && ok(q) {
				q.closed, q.told = true, true
				ids = append(ids, q.id)
			}
		}
	}
	take(func(q *question) bool { return q.sent && q.answer != nil && q.answer.Choice == choice })
	take(func(q *question) bool { return true })
	return ids
}

// countTool counts the running tools. When none is left, the gateway waits for no approval.
func (b *approvals) countTool(started bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if started {
		b.tools++
		return
	}
	if b.tools = max(b.tools-1, 0); b.tools == 0 {
		for _, q := range b.list {
			q.closed = true
		}
	}
}
