package direct

import (
	"slices"
	"sync"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// questions are the approval requests of a turn and their cards. The methods may be called
// concurrently: answers come from other goroutines than that of the turn.
type questions struct {
	mu   sync.Mutex
	list []*question
}

type question struct {
	approval string // ID of the approval at the gateway
	card     string // ID of its card
	decided  bool
}

// add adds an approval, and returns false if it was added before. make returns the ID of its card,
// and whether it is decided already; open is the number of undecided approvals before it.
func (q *questions) add(approval string, make func(open int) (card string, decided bool)) (fresh bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	open := 0
	for _, one := range q.list {
		if one.approval == approval {
			return false
		}
		if !one.decided {
			open++
		}
	}
	card, decided := make(open)
	q.list = append(q.list, &question{approval: approval, card: card, decided: decided})
	return true
}

// has reports whether the gateway requested the approval since this process followed the turn.
func (q *questions) has(approval string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.list, func(one *question) bool { return one.approval == approval })
}

// decide records that the user answered an approval.
func (q *questions) decide(approval string) {
	q.close(func(one *question) bool { return one.approval == approval }, agent.CloseCard{})
}

// answered closes the card of an approval that another client answered.
func (q *questions) answered(e gateway.ApprovalAnswered) []agent.Event {
	return q.close(func(one *question) bool { return one.approval == e.ApprovalID }, agent.CloseCard{OptionID: e.Choice})
}

// closeOthers closes the cards that an answer to all approvals decided as well.
func (q *questions) closeOthers(approval, choice string) []agent.Event {
	return q.close(func(one *question) bool { return one.approval != approval }, agent.CloseCard{OptionID: choice})
}

// closeAll closes the cards whose answers the gateway no longer waits for.
func (q *questions) closeAll() []agent.Event {
	return q.close(func(*question) bool { return true }, agent.CloseCard{Expired: true})
}

// close decides the undecided approvals that match, and returns the events that close their cards.
func (q *questions) close(match func(*question) bool, event agent.CloseCard) (events []agent.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.list {
		if !one.decided && match(one) {
			one.decided, event.ID = true, one.card
			events = append(events, event)
		}
	}
	return events
}
