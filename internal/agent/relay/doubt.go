package relay

import (
	"time"

	"hermes-mobile/internal/agent"
)

// Gateways before 0.20.6 run an event a second time when it comes a second time. So nothing that may have arrived there is
// sent again: before an event is written it is stored that it is given to the gateway ([agent.Given]), and what was written
// when the connection, the gateway or this process ended is in doubt. Often the gateway shows by its next op that it has it.
// Where it does not, the person is told.

const (
	// doubtWait is how long a sign is waited for: a gateway that works types every two seconds. 0.19 does not, but whoever
	// waits for its reply must not be kept from asking again.
	doubtWait = 15 * time.Second

	messageInDoubt = "It isn't known whether the agent got this message: the connection to it broke off at that moment. It wasn't sent again, so nothing is done twice. If no reply comes, send it again."
	answerInDoubt  = "It isn't known whether the agent got your answer to its question: the connection to it broke off at that moment. It wasn't sent again, so nothing is done twice."
)

// noteFirst stores that an event is about to be written, where the gateway would not know it again, and reports whether that
// has to be waited for.
func (g *gateway) noteFirst(it *item) bool {
	if it.noting || it.noted || it.given == (agent.Given{}) || g.version.dropsRepeats() {
		return it.noting
	}
	it.noting = true
	g.store(it.device, 0, func(err error) {
		it.noting, it.noted = false, err == nil
		if err != nil && len(g.queue) > 0 && g.queue[0] == it {
			g.queue = g.queue[1:]
			it.refused(agent.ErrAway)
		}
		g.pump()
	}, it.given)
	return true
}

// takeBack notes that an event was not written after all.
func (g *gateway) takeBack(it *item) {
	if it.sent || !it.noting && !it.noted {
		return
	}
	back := it.given
	back.Back = true
	g.post(it.device, back)
}

// tellDoubt tells the person what is not known.
func (g *gateway) tellDoubt(c *convo, t *turn, text string) {
	g.log.Warn("relay: the connection was lost with an event of which it is not known whether it arrived", "device", c.device)
	say := g.say(t, agent.NewID(), text)
	say.Final = true
	g.store(c.device, len(text), func(error) {}, say)
}
