package direct

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// How long gateways wait for an answer where their settings say nothing else (api-facts §6), and how much earlier a card
// ends, so that no answer comes too late.
const (
	timeoutOlder  = 60 * time.Second
	timeoutNewer  = 300 * time.Second
	timeoutMargin = 2 * time.Second
)

// approval is the agent's own part of a card.
type approval struct {
	ID     string `json:"id"` // of the approval in its turn
	Device string `json:"device"`
}

// allChoice answers every question that is open.
const allChoice = "all"

// choices are what a gateway may offer, in the order they are shown.
var choices = []agent.Option{
	{ID: "once", Label: "Allow once", Style: "primary"},
	{ID: "session", Label: "Allow until this turn ends"}, // what the API means by session (api-facts §6)
	{ID: "always", Label: "Always allow"},
	{ID: "deny", Label: "Deny", Style: "danger"},
}

// card is the question as a card. others: further questions of the turn are open.
func (t *turn) card(a gateway.Approval, others bool) agent.Card {
	state, _ := json.Marshal(approval{ID: a.ID, Device: t.in.Device}) // a string
	c := agent.Card{ID: agent.NewID(), N: t.in.N, Kind: "exec_approval", Text: "May I run this command?", Command: a.Command, Description: a.Description, State: state}
	for _, o := range choices {
		if slices.Contains(a.Choices, o.ID) {
			c.Options = append(c.Options, o)
			if o.ID == "once" && others {
				c.Options = append(c.Options, agent.Option{ID: allChoice, Label: "Allow once, all that are open"})
			}
		}
	}
	if c.Command == "" {
		c.Text = "May I do this?"
	}
	c.Life = t.agent.ApprovalTimeout
	if c.Life == 0 && newer(t.agent.capabilities()) {
		c.Life = timeoutNewer
	} else if c.Life == 0 {
		c.Life = timeoutOlder
	}
	c.Life = max(c.Life-timeoutMargin, time.Second)
	return c
}

// answer tells the gateway how a card was decided. ErrAway: it is to be told again.
func (a *Agent) answer(ctx context.Context, t *turn, card agent.Card, answer agent.Answer) error {
	var of approval
	if json.Unmarshal(card.State, &of) != nil || of.ID == "" {
		return nil // not a card of this agent: the agent was another one when it was asked
	}
	if t == nil {
		return a.answerWithoutTurn(ctx, of.Device, card.N)
	}
	running, left, err := t.followed(ctx)
	switch {
	case err != nil:
		return agent.ErrAway
	case left:
		return a.answerWithoutTurn(ctx, of.Device, card.N)
	case running == nil:
		return nil // it is begun anew, without this question
	}
	choice := gateway.ApprovalAnswer{RequestID: of.ID, Choice: answer.OptionID}
	if of.ID == unseen || t.in.Handed && strings.HasPrefix(of.ID, "approval-") && !t.questions.has(of.ID) {
		choice.RequestID = "" // a gateway without ids (0.19) that was asked before a restart: the oldest that waits
	}
	if answer.OptionID == allChoice {
		choice.Choice, choice.All = "once", true
	}
	t.questions.decide(of.ID)
	err = running.Answer(ctx, choice)
	switch {
	case err == nil:
		if choice.All {
			t.post(t.questions.closeOthers(of.ID, "once")...)
		}
		return nil
	case errors.Is(err, gateway.ErrApprovalClosed):
		if !answer.Expired && !t.in.Handed { // an earlier life may have given it
			t.notice("The answer came too late: the gateway no longer waited for it.")
		}
		return nil
	case ctx.Err() != nil:
		return agent.ErrAway
	case errors.Is(err, gateway.ErrClosed):
		return a.answerWithoutTurn(ctx, of.Device, card.N)
	case unreachable(err):
		a.probeNow()
		return agent.ErrAway
	}
	a.Log.Warn("the gateway did not take the answer to an approval", "device", t.in.Device, "error", err)
	t.notice("The gateway did not take the answer: " + strings.TrimSuffix(plainText(err), ".") + ".")
	return nil
}

// unfollowed is what is said to the answer for a turn that nobody follows. One that is still remembered was only left, by an
// earlier life or because the gateway could not be reached, and is taken up again soon.
func (a *Agent) answerWithoutTurn(ctx context.Context, device string, n int64) error {
	known, err := a.memory.get(ctx, device)
	if err != nil || known.Turn != nil && known.Turn.N == n {
		return agent.ErrAway
	}
	return nil
}

// ask shows a question, unless an earlier life did. What was said before it is finished.
func (t *turn) ask(r *reply, a gateway.Approval) {
	known, before := t.askedBefore(a.ID)
	var card agent.Card
	fresh := t.questions.add(a.ID, func(open int) (id string, decided bool) {
		if known {
			return before, before == ""
		}
		card = t.card(a, open > 0)
		return card.ID, false
	})
	if !fresh || known {
		return
	}
	t.tell(append(r.finish(), agent.Ask{Card: card})...)
	// After it: it is better to ask twice than never.
	t.change(func(b *startedTurn) { b.Asked = append(slices.Clone(b.Asked), a.ID) })
}

// unseen is the id of a question whose words are lost with the events of a gateway that tells them once (0.19).
const unseen = "approval-unseen"

// askUnseen asks for a question of which only this much is known, unless its card is still open.
func (t *turn) askUnseen(r *reply) {
	if len(t.in.Cards) == 0 {
		t.ask(r, gateway.Approval{ID: unseen, Choices: []string{"once", "deny"},
			Description: "The gateway asked for a permission while this server was not there to hear it. What it is for is not known."})
	}
}

// askedBefore reports whether an earlier life showed an approval, and its card where that is still to be decided.
func (t *turn) askedBefore(id string) (known bool, card string) {
	for _, c := range t.in.Cards {
		var of approval
		if json.Unmarshal(c.State, &of) == nil && of.ID == id {
			return true, c.ID
		}
	}
	c, err := t.agent.memory.get(t.ctx, t.in.Device)
	return err == nil && c.Turn != nil && c.Turn.N == t.in.N && slices.Contains(c.Turn.Asked, id), ""
}
