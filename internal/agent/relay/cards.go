package relay

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	// cardPrefix begins the message_id of a prompt, and the card's id follows. So an edit that closes a
	// card is recognized after a restart of ours, too.
	cardPrefix = "card-"
	// confirmWithin is how long after its ack a card's answer may be confirmed by a message.
	confirmWithin = 3 * time.Second
	// confirmEarly is how long after it was written an answer may be confirmed before its ack, if the
	// confirmation ever comes first.
	confirmEarly = 250 * time.Millisecond
	// maxConfirmation bounds the text of a confirmation, in bytes.
	maxConfirmation = 200
	// skipWord means in a newer gateway, in any language, that a question is not answered (a constant
	// of its source).
	skipWord = "skip"
)

const answerInDoubt = "It isn't known whether the agent got your answer to its question: the connection to it broke off at that moment. It wasn't sent again, so nothing is done twice."

// cards are the questions of one conversation that await an answer. The lock of the gateway must be
// held.
type cards struct {
	device   string
	now      func() time.Time
	seq      *sequencer
	run      func(func(ctx context.Context)) bool // runs a function in a goroutine of the agent
	config   func() *Gateway
	traits   *traits
	reports  *reports
	answers  *answers
	queue    *queue
	turns    *turns
	identity *identity
	wake     func() // has the clock look at the conversation

	open map[string]string // the nonce of their process, by id
	// After an answer the gateway sends a confirmation, see confirms.
	confirmations int
	confirmBy     time.Time
	onConfirm     func(confirmed bool)
	checked       bool // stored cards of earlier processes were looked for
}

// prompt shows a card.
func (cs *cards) prompt(a *action) {
	card := promptCard(a)
	if len(card.Options) == 0 {
		cs.answers.fail(a, "a prompt without options") // the gateway asks in words then
		return
	}
	cs.closeStale()
	t := cs.turns.running
	if t != nil {
		t.says(cs.now())
		card.N = t.n
	}
	cs.turns.plainLast = time.Time{}
	who, nonce := cs.identity.person, nonceOf(a.PromptID)
	card.State = encode(cardState{
		Gateway: cs.config().ID, Chat: cs.device, Prompt: a.PromptID, Nonce: nonce, Kind: card.Kind,
		User: who.user, UserName: who.userName, Name: who.device, Profile: cs.identity.profile(t),
	})
	cs.open[card.ID] = nonce
	t.waitsFor(card.ID, card.Kind)
	answer := cs.answers.stored(a, cardPrefix+card.ID)
	cs.reports.store(cs.device, a.size, func(err error) {
		if err != nil {
			delete(cs.open, card.ID)
		}
		answer(err)
	}, agent.Ask{Card: card})
}

// closed handles an edit of a card's message: its time is over.
func (cs *cards) closed(a *action, card string) {
	cs.gone(card)
	cs.reports.store(cs.device, 0, cs.answers.stored(a, a.MessageID), agent.CloseCard{ID: card, Expired: true})
}

// gone notes that a card is not open any more.
func (cs *cards) gone(id string) {
	delete(cs.open, id)
	cs.turns.alive()
}

// adopt takes over the open cards of a turn from an earlier run of this process.
func (cs *cards) adopt(t *turn, list []agent.Card) {
	for _, card := range list {
		if st, err := parseCardState(card.State); err == nil && st.Gateway == cs.config().ID && !cs.traits.stale(st.Nonce) {
			cs.open[card.ID] = st.Nonce
			t.waitsFor(card.ID, st.Kind)
		}
	}
}

// endTurn closes the cards without whose answer a turn could not go on, and returns their events.
func (cs *cards) endTurn(t *turn) (events []agent.Event) {
	for _, id := range t.asked {
		if _, open := cs.open[id]; open {
			delete(cs.open, id)
			events = append(events, agent.CloseCard{ID: id, Expired: true})
		}
	}
	return events
}

// expire closes the open cards of processes other than the one with the nonce keep, or all if keep is
// empty.
func (cs *cards) expire(keep string) {
	for id, nonce := range cs.open {
		if nonce != keep || keep == "" {
			delete(cs.open, id)
			cs.reports.post(cs.device, agent.CloseCard{ID: id, Expired: true})
		}
	}
	cs.checked = false
	if keep == "" {
		cs.closeStale()
	}
}

// closeStale closes cards of an earlier process of the gateway that were stored in an earlier run of
// ours, once it is known which process runs.
func (cs *cards) closeStale() {
	if cs.checked {
		return
	}
	cs.checked = true
	host, id := cs.reports.host(), cs.config().ID
	cs.run(func(ctx context.Context) {
		list, err := host.OpenCards(ctx, cs.device)
		if err != nil {
			return
		}
		cs.seq.do(func() {
			for _, card := range list {
				st, err := parseCardState(card.State)
				if err != nil || st.Gateway != id || !cs.traits.stale(st.Nonce) {
					continue
				}
				cs.gone(card.ID)
				cs.reports.post(cs.device, agent.CloseCard{ID: card.ID, Expired: true})
			}
		})
	})
}

// answer tells the gateway how a card was decided: by a prompt_response, and own words after it as a
// plain event (doc/hermes/relay.md §5). The ids follow from the card's, so that a repeat changes
// nothing.
func (cs *cards) answer(card agent.Card, st cardState, answer agent.Answer, ack func(error)) {
	if cs.traits.stale(st.Nonce) {
		cs.gone(card.ID)
		ack(nil) // its process is gone, nobody waits
		return
	}
	cs.identity.restore(st)
	t := cs.turns.running
	option, words := answer.OptionID, ""
	if option == "other" && st.Kind == "clarify" {
		words = answer.Text
	}
	if n := choiceNumber(option); n > 0 && st.Kind == "clarify" && st.Nonce == "" && t != nil {
		// 0.20.0 handles a choice in its reader, and stalls for 30 s (doc/hermes/relay.md §7). The number
		// of a choice it only reads.
		number := cs.identity.event(t, strconv.Itoa(n), "text", cs.identity.answerID("w", card.ID))
		cs.send(card.ID, number, nil, ack, func() {
			cs.gone(card.ID)
			ack(nil)
		})
		return
	}
	skip := false
	if option == "" {
		if st.Kind != "clarify" || !hasOption(card, "other") || t == nil {
			cs.gone(card.ID)
			ack(nil)
			return
		}
		option, words, skip = "other", skipWord, true
	}
	choice := cs.identity.event(t, "/"+option, "command", cs.identity.answerID("c", card.ID))
	if st.Profile != "" { // that asked, whatever was chosen since
		choice.Source.Profile = st.Profile
	}
	choice.PromptResponse = &promptResponse{PromptID: st.Prompt, OptionID: option, PromptMessageID: cardPrefix + card.ID}
	sure := st.Nonce != "" && st.Nonce == cs.traits.nonce && !skip
	written := func() { cs.confirmations, cs.confirmBy = 1, cs.now().Add(confirmEarly) }
	cs.send(card.ID, choice, written, ack, func() {
		cs.gone(card.ID)
		cs.confirmBy = cs.now().Add(confirmWithin)
		cs.wake()
		if words == "" {
			ack(nil)
			return
		}
		say := func() {
			if skip && cs.turns.running == nil {
				ack(nil)
				return
			}
			cs.say(card.ID, words, choice.Source.Profile, ack)
		}
		// The words would be a message of their own if the gateway did not know the prompt any more. It
		// does if the prompt belongs to its current process, or if it confirms the choice.
		if sure {
			say()
			return
		}
		cs.onConfirm = func(confirmed bool) {
			if confirmed {
				say()
			} else {
				ack(nil)
			}
		}
	})
}

// say sends the words of an answer, after its choice.
func (cs *cards) say(card, words, profile string, ack func(error)) {
	rejected := ack
	if !cs.traits.version.dropsRepeats() { // if it were told again, the choice would go first, and must not
		rejected = func(error) {
			cs.turns.tellDoubt(cs.turns.running, answerInDoubt)
			ack(nil)
		}
	}
	ev := cs.identity.event(cs.turns.running, words, "text", cs.identity.answerID("w", card))
	ev.Source.Profile = profile
	cs.send(card, ev, nil, rejected, func() { ack(nil) })
}

// send queues an event that answers a card.
func (cs *cards) send(card string, ev event, written func(), rejected func(error), acked func()) {
	it, err := newItem(cs.device, ev, agent.Given{Card: card})
	if err != nil {
		rejected(err)
		return
	}
	it.written, it.acked, it.rejected = written, acked, rejected
	it.lost = func() {
		cs.gone(card)
		rejected(nil)
		if t := cs.turns.running; t != nil {
			t.doubt, t.sign = answerInDoubt, cs.now()
		} else {
			cs.turns.tellDoubt(nil, answerInDoubt)
		}
	}
	cs.queue.add(it)
}

// confirms reports whether a send only confirms the answer to a card, and answers it then: "✅ Approved
// once", "✏️ Type your answer:". It says nothing that the decision of the card does not.
//
// The words cannot be matched, so the place is. The gateway begins to send the confirmation while it
// handles the answer (recordings 00, 04, 09, 10 and its source). So it is the first plain send after
// we wrote the answer, and comes within milliseconds of the ack. Exactly one is left out for an
// answer. The second one after the confirmation of /new, which has the outcome, is shown.
func (cs *cards) confirms(a *action) bool {
	if !a.plain() || isRecovered(a.Content) || len(strings.TrimSpace(a.Content)) > maxConfirmation {
		return false
	}
	if cs.confirmations == 0 || cs.now().After(cs.confirmBy) {
		cs.confirmations = 0
		return false
	}
	cs.confirmations--
	cs.turns.alive()
	cs.answers.accept(a, agent.NewID())
	if then := cs.onConfirm; then != nil {
		cs.onConfirm = nil
		then(true)
	}
	return true
}

// clock gives up on a confirmation that does not come.
func (cs *cards) clock(now time.Time) {
	if then := cs.onConfirm; then != nil && now.After(cs.confirmBy) {
		cs.confirmations, cs.onConfirm = 0, nil
		then(false)
	}
}

// disconnected notes that the connection is over: a confirmation that was lost does not come again.
func (cs *cards) disconnected() { cs.confirmations = 0 }
