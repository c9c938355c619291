package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// asked is how the gateway names an approval: an id that may be empty or used twice, and when it asked.
type approvalKey struct {
	id string
	at float64
}

// approvals are the questions of one turn, in the order they were asked. A gateway without ids, or with one id for two
// questions, hands an answer to the oldest; so an answer to a later one is kept here until its turn comes.
type approvals struct {
	mu    sync.Mutex
	list  []*question
	tools int // that run now: an approval does not outlive its tool
}

type question struct {
	id     string // ours
	asked  approvalKey
	offers []string
	shown  bool
	answer *ApprovalAnswer
	sent   bool // the gateway has the answer, or is being given it
	closed bool // answered, or nobody waits any more
	told   bool // its ApprovalAnswered was given out
}

// madeID begins the ids that are made here.
const localIDPrefix = "approval-"

// ask enters a question and gives it its id. It is not to be shown where it was before.
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

// record keeps an answer. Where the question is not known here, as after a restart of the program, the answer itself names
// it to the gateway.
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
		q.closed = false // that nobody waits was only concluded: the gateway knows
	case q.closed, q.answer != nil:
		return nil, ErrApprovalClosed
	}
	if len(q.offers) > 0 && !slices.Contains(q.offers, a.Choice) {
		return nil, fmt.Errorf("gateway: choice %q is not offered for this approval, use one of %s", a.Choice, strings.Join(q.offers, ", "))
	}
	q.answer = &a
	return q, nil
}

// due returns the next question whose answer the gateway can be given now, and marks it. It is nil where there is none.
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

// settled takes what the gateway said to the answer of q. One that did not arrive is kept where nobody waits to hear of
// it, else it may be given again.
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

// answered takes an answer that the stream reports, and says which questions it was for.
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

// tool counts the tools that run. When none does, nobody waits for an answer any more.
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
