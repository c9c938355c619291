package relay

import (
	"context"
	"slices"

	"hermes-mobile/internal/agent"
)

// A text may be added to the turn that runs where the gateway's display.busy_input_mode is steer: it is then a plain event
// like any other, which stalls no reader (relay-facts, "Steering"). While a tool runs, the model reads it with the tool's
// result, and the turn's reply answers both. Without a tool, what came is answered after the turn's reply, all of it by one
// more: newer gateways name no message in that, 0.19 names the message of the turn, and then not in the turn's own reply.
// What reaches a gateway that is only beginning the turn gets a turn of its own, named by its id.

// askSteers finds out whether the gateway adds texts to running turns. What can be read is what it read when it started.
func (g *gateway) askSteers() {
	if g.a.opt.Steers == nil {
		return
	}
	id, l := g.config().ID, g.link
	g.a.goDo(func(ctx context.Context) {
		does := g.a.opt.Steers(ctx, id)
		g.do(func() {
			if g.link == l && g.steers != does {
				g.steers = does
				g.changed()
			}
		})
	})
}

// mayJoin reports whether an input may be added to the turn of c.
func (g *gateway) mayJoin(c *convo, in *agent.Input) bool {
	t := c.turn
	return g.steers && in.Joins == t.n && in.Kind == agent.Text && command(in.Text) == "" && t.endAt.IsZero() && t.notified.IsZero() && !t.stopping && !t.handed
}

// join gives an input to the gateway for the turn that runs, or holds it while the gateway waits for an answer, which it would
// be taken for.
func (g *gateway) join(c *convo, in agent.Input, it *item, tell func(error)) {
	t := c.turn
	it.joins = t
	it.acked = func() {
		t.steered = append(t.steered, &turn{n: in.N, inputID: in.ID, mid: it.id})
		tell(nil)
		g.post(c.device, agent.Done{N: in.N})
	}
	it.refused = tell
	it.lost = func() {
		it.acked()
		g.tellDoubt(c, t.steered[len(t.steered)-1], messageInDoubt)
	}
	c.joining = append(c.joining, it)
	g.joinNow(c)
}

// joinNow sends what is held for the turn of c, where nothing is asked.
func (g *gateway) joinNow(c *convo) {
	if len(c.joining) == 0 || c.turn == nil || len(c.cards) > 0 || c.question {
		return
	}
	list := c.joining
	c.joining = nil
	for _, it := range list {
		g.enqueue(it)
	}
}

// leave gives back what was to join a turn that is over, and was not written.
func (g *gateway) leave(c *convo, t *turn) {
	list := c.joining
	c.joining = nil
	g.queue = slices.DeleteFunc(g.queue, func(it *item) bool {
		if it.joins == t && !it.sent {
			list = append(list, it)
			return true
		}
		return false
	})
	for _, it := range list {
		g.takeBack(it)
		it.refused(agent.ErrOwnTurn)
	}
}

// claimSteered gives a message that names none, or the wrong one, to what was added to the turn, and reports whether it did.
func (g *gateway) claimSteered(c *convo, a *action) bool {
	t := c.turn
	if t == nil || len(t.steered) == 0 || t.unnamed || a.Metadata.JobID != "" || isRecovered(string(a.Content)) {
		return false
	}
	last := t.steered[len(t.steered)-1]
	if g.version != Older {
		if a.replyID() != "" || !t.content || a.Op != "draft" && (a.Op != "send" || a.plain()) {
			return false
		}
		a.Metadata.ReplyTo = loose(last.mid)
		return true
	}
	switch {
	case a.Op != "send":
		return false
	case a.plain() && !asksInWords(string(a.Content)): // more follows
		a.ReplyTo = loose(t.mid)
		if t.answered && t.ownReplies < len(t.steered) {
			a.ReplyTo = loose(t.steered[t.ownReplies].mid)
			t.ownReplies++
		}
		t.answered = true
		return true
	case t.answered && bool(a.Metadata.Notify) && a.replyID() == t.mid:
		a.ReplyTo = loose(last.mid)
		return true
	}
	return false
}

// isOf reports whether s is t, or was added to it.
func (t *turn) isOf(s *turn) bool { return s != nil && (s == t || slices.Contains(t.steered, s)) }
