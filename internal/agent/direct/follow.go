package direct

import (
	"errors"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// follow reads the turn to its end and reports it. again is true if the turn must start again: the
// gateway lost it in a restart, or was not ready for it.
func (t *turn) follow(running *gateway.Turn) (again bool) {
	defer running.Close()
	r := &reply{turn: t, stored: t.in.Texts}
	for {
		over, again, err := t.read(running, r)
		switch {
		case over || t.ctx.Err() != nil:
			return again // when the server stops, the run continues
		case (errors.Is(err, gateway.ErrSignIn) || errors.Is(err, gateway.ErrIdentity)) && !t.isStopped():
			// The owner must fix that. The run continues meanwhile.
			t.agent.probeNow()
			t.pause(t.ctx, busyWait)
		default:
			t.agent.probeNow()
			t.ended(r, gateway.Outcome{State: gateway.Unknown, Err: err})
			return false
		}
	}
}

// read reports the events until the turn ends or an error interrupts them.
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

// maxTries limits how often a turn starts again because the gateway was still loading: about two
// minutes.
const maxTries = 40

// failedLoading reports whether the turn failed only because the gateway was still loading, and
// should start again. Turns that waited for the gateway are always among its first requests.
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
		t.agent.Log.Info("gateway still loading, turn restarts", "device", t.in.Device)
	}
	return again
}

// ended reports the rest and ends the turn. The stored turn is deleted only once its end is stored,
// so after a crash it is looked up again and not run again.
func (t *turn) ended(r *reply, o gateway.Outcome) {
	t.stopTyping()
	events := append(r.end(o), t.questions.closeAll()...)
	events = append(events, t.steps.end(o.State == gateway.Completed)...)
	if text := failureText(o, r.finished > 0 || t.in.Texts > 0, t.isStopped()); text != "" {
		events = append(events, t.say(agent.NewID(), text, true)) // not sent before a restart, because it ends the turn
	}
	events = append(events, t.settle(&o)...)
	t.agent.recordOutcome(t, o)
	if t.store(append(events, agent.Done{N: t.in.N, Interrupted: o.State != gateway.Completed})...) {
		t.forget()
	}
}

// failureText tells the user about a turn that did not end well.
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
		return "The turn was interrupted at the gateway. The reply above may be incomplete."
	case gateway.Absent:
		return "The gateway did not receive this message. Send it again."
	case gateway.Unknown:
		return "The connection to the gateway was lost, so it is unknown what happened to this message. Check before you send it again."
	case gateway.Failed:
		if o.Err != nil {
			return "The turn failed: " + sentence(o.Err)
		}
		return "The turn failed."
	}
	return ""
}

// shortfall tells the user about a reply that is incomplete or missing.
func shortfall(o gateway.Outcome, said bool) string {
	if text := cutReason(o.FinishReason, said); text != "" {
		return text
	}
	switch {
	case o.Partial:
		return "Part of the reply could not be read and is missing."
	case !said && (o.FinishReason == "tool_calls" || o.FinishReason == "function_call"):
		return "The model asked to run a tool, which it can only do behind a Hermes gateway."
	case !said:
		return "The model gave no answer."
	}
	return ""
}

// cutReason tells why a model ended its reply early, from OpenAI's finish_reason and the words of
// other servers for it. It returns "" for any other reason.
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
