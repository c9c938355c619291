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

// How long gateways wait for an answer by default (doc/hermes/api.md §6), and how much earlier a
// card expires, so that no answer comes too late.
const (
	timeoutOlder  = 60 * time.Second
	timeoutNewer  = 300 * time.Second
	timeoutMargin = 2 * time.Second
)

// approval is the agent's state of a card.
type approval struct {
	ID     string `json:"id"` // of the approval in its turn
	Device string `json:"device"`
}

// allChoice answers every open approval.
const allChoice = "all"

// choices are what a gateway can offer, in display order.
var choices = []agent.Option{
	{ID: "once", Label: "Allow once", Style: "primary"},
	{ID: "session", Label: "Allow until this turn ends"}, // "session" in the API means the turn (doc/hermes/api.md §6)
	{ID: "always", Label: "Always allow"},
	{ID: "deny", Label: "Deny", Style: "danger"},
}

// card returns the card of an approval. others is true if other approvals of the turn are open.
func (t *turn) card(a gateway.Approval, others bool) agent.Card {
	state, _ := json.Marshal(approval{ID: a.ID, Device: t.in.Device}) // strings always encode
	c := agent.Card{ID: agent.NewID(), N: t.in.N, Kind: "exec_approval", Text: "May I run this command?", Command: a.Command, Description: a.Description, State: state}
	for _, o := range choices {
		if slices.Contains(a.Choices, o.ID) {
			c.Options = append(c.Options, o)
			if o.ID == "once" && others {
				c.Options = append(c.Options, agent.Option{ID: allChoice, Label: "Allow all open requests once"})
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

// answer sends the decision of a card to the gateway. It returns ErrAway if it must be repeated.
func (a *Agent) answer(ctx context.Context, t *turn, card agent.Card, answer agent.Answer) error {
	var of approval
	if json.Unmarshal(card.State, &of) != nil || of.ID == "" {
		return nil // the card is from another agent
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
		return nil // the turn starts again, without this approval
	}
	choice := gateway.ApprovalAnswer{RequestID: of.ID, Choice: answer.OptionID}
	if of.ID == unseen || t.in.Handed && strings.HasPrefix(of.ID, "approval-") && !t.questions.has(of.ID) {
		choice.RequestID = "" // a gateway without IDs (0.19) that asked before a restart: the oldest approval is meant
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
		if !answer.Expired && !t.in.Handed { // it may have been sent before a restart
			t.notice("Your answer came too late: the gateway no longer waited for it.")
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
	a.Log.Warn("approval answer refused", "device", t.in.Device, "err", err)
	t.notice("The gateway refused your answer: " + strings.TrimSuffix(plainText(err), ".") + ".")
	return nil
}

// answerWithoutTurn handles the answer to a turn that is not followed. A turn that is still stored
// was only left, by a restart or because the gateway is offline, and is resumed soon.
func (a *Agent) answerWithoutTurn(ctx context.Context, device string, n int64) error {
	known, err := a.memory.get(ctx, device)
	if err != nil || known.Turn != nil && known.Turn.N == n {
		return agent.ErrAway
	}
	return nil
}

// ask shows an approval, unless it was shown before a restart. It first finishes the text before
// it.
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
	// After that: asking twice is better than never.
	t.change(func(b *startedTurn) { b.Asked = append(slices.Clone(b.Asked), a.ID) })
}

// unseen is the ID of an approval whose request is lost with the events of a gateway that sends
// them once (0.19).
const unseen = "approval-unseen"

// askUnseen asks for an approval of which nothing else is known, unless its card is still open.
func (t *turn) askUnseen(r *reply) {
	if len(t.in.Cards) == 0 {
		t.ask(r, gateway.Approval{ID: unseen, Choices: []string{"once", "deny"},
			Description: "The gateway asked for approval while this server was offline, so the command is unknown."})
	}
}

// askedBefore reports whether an approval was shown before a restart, and returns its card if that
// is undecided.
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
