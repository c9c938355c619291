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
	stopped atomic.Bool // by the user, not by the end of the server
	ended   bool
	skip    int // finals that are already stored by an earlier run of this process
	answers chan answered

	mu     sync.Mutex
	added  []string // texts that the user added while it ran
	closed bool     // its last message is being said
}

// add adds a text to the turn. It reports false if it is too late.
func (t *turn) add(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed {
		t.added = append(t.added, text)
	}
	return !t.closed
}

// close returns the text of the last message with the texts that were added.
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
	ack    func(error)
}

// message returns an edit or a final message of this turn.
func (t *turn) message(id, text string, final bool) agent.Say {
	return agent.Say{ID: id, Text: text, Final: final, ReplyTo: t.in.ID, N: t.in.N}
}

// final posts one whole message. If last is set, the turn ends with it.
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

// reply posts one whole message, which ends the turn.
func (t *turn) reply(text string) { t.final(t.message(agent.NewID(), text, true), true) }

// stream posts texts one after the other as edits of one message, with a pause before each but the first.
// Then it posts the final text, which ends the turn.
func (t *turn) stream(edits []string, every time.Duration, final string) {
	id := agent.NewID()
	if t.skip > 0 { // its final is stored
		t.final(t.message(id, final, true), true)
		return
	}
	said := ""
	for i, text := range edits {
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

// lastPause is the longest pause between the last edit of a message and its final text.
const lastPause = 150 * time.Millisecond

// cut ends a message with the text so far, if the user stopped it. If the server stops, the turn is left as
// it is: the next run of this process runs it again.
func (t *turn) cut(id, said string) {
	if !t.stopped.Load() {
		return
	}
	say := t.message(id, said, true)
	say.Interrupted = true
	t.final(say, true)
}

// words returns the beginnings of a text, each n words longer than the one before.
func words(text string, n int) []string {
	if many := strings.Count(text, " ") / 2000; many > n { // nobody waits a quarter of an hour for an echo
		n = many
	}
	var beginnings []string
	count := 0
	for i := range len(text) {
		if text[i] == ' ' {
			if count++; count == n {
				beginnings = append(beginnings, text[:i])
				count = 0
			}
		}
	}
	return append(beginnings, text)
}

// ask shows cards, unless an earlier run of this process did, and replies one text for each answer, in the
// order in which they come.
func (t *turn) ask(cards []agent.Card, text func(agent.Card, agent.Answer) string) {
	open := map[string]bool{}
	if t.in.Handed && (len(t.in.Cards) > 0 || t.skip > 0) {
		t.skip = 0 // the stored replies belong to cards that are settled
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
				a.ack(nil)
				continue
			}
			delete(open, a.card.ID)
			say := t.message(agent.NewID(), text(a.card, a.answer), true)
			say.Settles = a.card.ID
			t.final(say, len(open) == 0)
			a.ack(nil)
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

// interrupted ends a turn that the user stopped before it said anything.
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

// rest acknowledges answers that came when the turn was over.
func (t *turn) rest() {
	for {
		select {
		case a := <-t.answers:
			a.ack(nil)
		default:
			return
		}
	}
}
