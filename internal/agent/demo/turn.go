package demo

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/agent"
)

// turn is the answer to one input, run by a goroutine of its own.
type turn struct {
	agent   *Agent
	in      agent.Input
	ctx     context.Context
	stop    context.CancelFunc
	stopped atomic.Bool // by the person, not by the end of the server
	ended   bool
	skip    int // finals that an earlier life has stored already
	answers chan answered

	mu     sync.Mutex
	added  []string // what the person added while it ran
	closed bool     // its last message is being said
}

// add adds a text to the turn; false: it is too late.
func (t *turn) add(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.added = append(t.added, text)
	}
	return !t.closed
}

// close returns the text of the last message with what was added.
func (t *turn) close(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for _, a := range t.added {
		text += "\nYou added: " + a
	}
	return text
}

type answered struct {
	card   agent.Card
	answer agent.Answer
	taken  func(error)
}

// say makes a step or a final of this turn.
func (t *turn) message(id, text string, final bool) agent.Say {
	return agent.Say{ID: id, Text: text, Final: final, ReplyTo: t.in.ID, N: t.in.N}
}

// final says one whole message. last: the turn ends with it.
func (t *turn) final(say agent.Say, last bool) {
	events := []agent.Event{}
	if last {
		say.Text = t.close(say.Text)
	}
	if t.skip > 0 {
		t.skip--
	} else {
		events = append(events, say)
	}
	if last {
		t.ended = true
		events = append(events, agent.Done{N: t.in.N})
	}
	if len(events) > 0 {
		t.agent.post(t.in.Device, events...)
	}
}

// reply says one whole message, which ends the turn.
func (t *turn) reply(text string) { t.final(t.message(agent.NewID(), text, true), true) }

// stream says texts one after the other as steps of one message, with a pause before each but the first; then the final,
// which ends the turn.
func (t *turn) stream(steps []string, every time.Duration, final string) {
	id := agent.NewID()
	if t.skip > 0 { // its final is stored
		t.final(t.message(id, final, true), true)
		return
	}
	said := ""
	for i, text := range steps {
		if i > 0 && !pause(t.ctx, every) {
			t.cut(id, said)
			return
		}
		said = text
		t.agent.post(t.in.Device, t.message(id, text, false))
	}
	if !pause(t.ctx, min(every, lastPause)) {
		t.cut(id, said)
		return
	}
	t.final(t.message(id, final, true), true)
}

// lastPause is the longest pause between the last step of a message and its final.
const lastPause = 150 * time.Millisecond

// cut ends a message with what there was, when the person stopped it. When it is the server that stops, the turn is left
// as it is: it runs again in the next life.
func (t *turn) cut(id, said string) {
	if !t.stopped.Load() {
		return
	}
	say := t.message(id, said, true)
	say.Interrupted = true
	t.final(say, true)
}

// words cuts a text after every n words.
func words(text string, n int) []string {
	if many := strings.Count(text, " ") / 2000; many > n { // nobody waits a quarter of an hour for an echo
		n = many
	}
	var steps []string
	count := 0
	for i := range len(text) {
		if text[i] == ' ' {
			if count++; count == n {
				steps = append(steps, text[:i])
				count = 0
			}
		}
	}
	return append(steps, text)
}

// ask shows cards, unless an earlier life of this turn did, and says one text for each answer, in the order they come.
func (t *turn) ask(cards []agent.Card, text func(agent.Card, agent.Answer) string) {
	open := map[string]bool{}
	if t.in.Handed && (len(t.in.Cards) > 0 || t.skip > 0) {
		t.skip = 0 // what was said belongs to cards that are settled
		for _, c := range t.in.Cards {
			open[c.ID] = true
		}
	} else {
		var events []agent.Event
		for _, c := range cards {
			c.ID, c.N = agent.NewID(), t.in.N
			open[c.ID] = true
			events = append(events, agent.Ask{Card: c})
		}
		t.agent.post(t.in.Device, events...)
	}
	for len(open) > 0 {
		select {
		case a := <-t.answers:
			if !open[a.card.ID] {
				a.taken(nil)
				continue
			}
			delete(open, a.card.ID)
			say := t.message(agent.NewID(), text(a.card, a.answer), true)
			say.Settles = a.card.ID
			t.final(say, len(open) == 0)
			a.taken(nil)
		case <-t.ctx.Done():
			if t.stopped.Load() {
				for id := range open {
					t.agent.post(t.in.Device, agent.CloseCard{ID: id, Expired: true})
				}
				t.interrupted()
			}
			return
		}
	}
	if !t.ended {
		t.end()
	}
}

// interrupted ends a turn that the person stopped before it said anything.
func (t *turn) interrupted() {
	say := t.message(agent.NewID(), "stopped", true)
	say.Interrupted = true
	t.final(say, true)
}

func (t *turn) end() {
	t.close("")
	t.ended = true
	t.agent.post(t.in.Device, agent.Done{N: t.in.N})
}

// rest settles answers that came when the turn was over.
func (t *turn) rest() {
	for {
		select {
		case a := <-t.answers:
			a.taken(nil)
		default:
			return
		}
	}
}
