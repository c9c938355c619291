package direct

import (
	"errors"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// follow reads the turn to its end and says what happens. again: it is to be begun, since the gateway knows nothing of a turn of an
// earlier life, or was not ready for one.
func (t *turn) follow(running *gateway.Turn) (again bool) {
	defer running.Close()
	r := &reply{turn: t, stored: t.in.Texts}
	for {
		over, again, err := t.read(running, r)
		switch {
		case over || t.ctx.Err() != nil:
			return again // where the server stops the run goes on
		case (errors.Is(err, gateway.ErrSignIn) || errors.Is(err, gateway.ErrIdentity)) && !t.isStopped():
			// That is for the owner to mend. The run does not end by it.
			t.agent.probeNow()
			t.pause(t.ctx, busyWait)
		default:
			t.agent.probeNow()
			t.ended(r, gateway.Outcome{State: gateway.Unknown, Err: err})
			return false
		}
	}
}

// read says what the events tell, until the turn is over or an error interrupts them.
func (t *turn) read(running *gateway.Turn, r *reply) (over, again bool, err error) {
	for e, err := range running.Events(t.ctx) {
		if err != nil {
			return false, false, err
		}
		switch e := e.(type) {
		case gateway.ToolStarted:
			t.tell(append(r.finish(), t.steps.toolStarted(e))...)
		case gateway.ToolEnded:
			if step, ok := t.steps.toolEnded(e); ok {
				t.post(step)
				if t.steps.none() { // the gateway waits for no approval any more (doc/hermes/api.md §6)
					t.post(t.questions.closeAll()...)
				}
			}
		case gateway.ApprovalRequested:
			t.ask(r, e.Approval)
		case gateway.ApprovalAnswered:
			t.post(t.questions.answered(e)...)
		case gateway.Status:
			switch e.Kind {
			case gateway.StatusReconnecting, gateway.StatusSettling:
				t.agent.probeNow()
			case gateway.StatusWaiting:
				t.askUnseen(r)
			case gateway.StatusSubagentStarted:
				if step, ok := t.steps.delegated(e); ok {
					t.post(step)
				}
			case gateway.StatusSubagentEnded:
				if step, ok := t.steps.delegationEnded(e); ok {
					t.post(step)
				}
			}
		case gateway.Ended:
			if e.Outcome.State == gateway.Absent && t.resumed || t.failedLoading(r, e.Outcome) {
				return true, true, nil
			}
			t.ended(r, e.Outcome)
			return true, false, nil
		default:
			t.tell(r.apply(e)...)
		}
	}
	return false, false, gateway.ErrStreamBroken
}

// maxTries bounds the turns that are begun because the gateway was still loading: with the pauses between them that is two minutes.
const maxTries = 40

// premature reports whether the turn failed only because the gateway was still loading, and is to be begun anew. What waited for the
// gateway to come back is always among the first that it is asked.
func (t *turn) failedLoading(r *reply, o gateway.Outcome) bool {
	if !errors.Is(o.Err, gateway.ErrLoading) || r.hasOutput() || t.steps.tools > 0 || t.isStopped() {
		return false
	}
	again := false
	noted := t.change(func(b *startedTurn) {
		if again = b.Tries < maxTries; again {
			b.Tries, b.Handle = b.Tries+1, nil
		}
	})
	if again = again && noted; again {
		t.agent.Log.Info("the gateway is still loading: a turn is begun anew", "device", t.in.Device)
	}
	return again
}

// ended says the rest and ends the turn. It is forgotten only when its end is stored, so a crash in between has it looked
// up again and not run again.
func (t *turn) ended(r *reply, o gateway.Outcome) {
	t.stopTyping()
	events := append(r.end(o), t.questions.closeAll()...)
	events = append(events, t.steps.end(o.State == gateway.Completed)...)
	if text := failureText(o, r.finished > 0 || t.in.Texts > 0, t.isStopped()); text != "" {
		events = append(events, t.say(agent.NewID(), text, true)) // no earlier life said it, for it would have ended the turn
	}
	events = append(events, t.settle(&o)...)
	t.agent.recordOutcome(t, o)
	if t.store(append(events, agent.Done{N: t.in.N, Interrupted: o.State != gateway.Completed})...) {
		t.forget()
	}
}

// failure is what a person is told of a turn that did not end well.
func failureText(o gateway.Outcome, said, stopped bool) string {
	switch o.State {
	case gateway.Completed:
		return shortfall(o, said)
	case gateway.Cancelled:
		if !said || !stopped {
			return "The turn was stopped."
		}
	case gateway.Interrupted:
		if text := cutReason(o.FinishReason, said); text != "" {
			return text
		}
		return "The turn was interrupted at the gateway. What there is of the answer is above, if anything."
	case gateway.Absent:
		return "The gateway knows nothing of this message: it was not worked on. Send it again."
	case gateway.Unknown:
		return "The connection to the gateway was lost, and what became of this message cannot be found out. Look before you send it again."
	case gateway.Failed:
		if o.Err != nil {
			return "The turn failed: " + sentence(o.Err)
		}
		return "The turn failed."
	}
	return ""
}

// shortfall is what a user is told of a reply that is not whole, or not there.
func shortfall(o gateway.Outcome, said bool) string {
	if text := cutReason(o.FinishReason, said); text != "" {
		return text
	}
	switch {
	case o.Partial:
		return "A part of the reply could not be read, and is missing."
	case !said && (o.FinishReason == "tool_calls" || o.FinishReason == "function_call"):
		return "The model asked to run a tool, which it can only do behind a Hermes gateway."
	case !said:
		return "The model gave no answer."
	}
	return ""
}

// whyCut says why a model ended its reply early, by OpenAI's finish_reason and the words of other servers for the same; empty where
// that is not the reason.
func cutReason(reason string, said bool) string {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "max_output_tokens":
		if said {
			return "The reply was cut off: the model reached the limit of its output."
		}
		return "The model reached the limit of its output before it gave an answer."
	case "content_filter":
		if said {
			return "The reply was cut off by the provider's content filter."
		}
		return "The provider's content filter withheld the reply."
	}
	return ""
}
