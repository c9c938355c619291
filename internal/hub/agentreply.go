package hub

import (
	"hermes-mobile/internal/agent"
)

// evAgentReply: the agent has events for the conversation.
type evAgentReply struct {
	onDevice
	events []agent.Event
	done   func(error)
}

func (e *evAgentReply) quick() bool {
	return e.done == nil && e.d.dev != nil && e.d.conversation.quick(e.events)
}

func (e *evAgentReply) fail(err error) {
	if e.done != nil {
		e.done(err)
	}
}

func (e *evAgentReply) apply(b *batch) {
	d := e.d
	if d.dev == nil || d.dev.Revoked || d.rejects(d.dev.Owner()) {
		e.fail(agent.ErrNoDevice)
		return
	}
	d.conversation.turns.alive()
	for _, ev := range e.events {
		if _, home := ev.(agent.Home); home {
			d.agentMadeHome(b)
			continue
		}
		d.conversation.apply(b, ev)
	}
	if e.done != nil {
		b.do(nil, e.done)
	}
}
