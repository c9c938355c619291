package direct

import (
	"slices"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

// steps are the tools and the tasks of subagents that run in a turn, as the user sees them. Only the
// goroutine of the turn uses them.
type steps struct {
	n           int64 // of the turn's input
	running     []agent.ToolStep
	delegations map[string]string // IDs of steps, by the gateway's IDs of tasks
	tools       int               // tools that were started
}

// none reports whether nothing runs.
func (s *steps) none() bool { return len(s.running) == 0 }

// toolStarted adds a tool.
func (s *steps) toolStarted(e gateway.ToolStarted) agent.Event {
	s.tools++
	return s.start(e.Name, e.Preview)
}

func (s *steps) start(name, title string) agent.ToolStep {
	step := agent.ToolStep{ID: agent.NewID(), Name: name, State: "started", Title: title, N: s.n}
	s.running = append(s.running, step)
	return step
}

// toolEnded ends the oldest tool with this name: gateways do not say which one it was.
func (s *steps) toolEnded(e gateway.ToolEnded) (ended agent.Event, ok bool) {
	at := slices.IndexFunc(s.running, func(step agent.ToolStep) bool { return step.Name == e.Name })
	if at < 0 {
		return nil, false
	}
	return s.stop(at, !e.Failed, e.Preview), true
}

func (s *steps) stop(at int, done bool, text string) agent.ToolStep {
	step := s.running[at]
	s.running = slices.Delete(s.running, at, at+1)
	step.State, step.Text = stepState(done), text
	return step
}

func stepState(done bool) string {
	if done {
		return "done"
	}
	return "failed"
}

// subagent is the name under which the task of a subagent is shown, like a tool.
const subagent = "subagent"

// maxDelegations limits the tasks of a turn that are told apart.
const maxDelegations = 1000

// delegated adds the task of a subagent, unless it was added before.
func (s *steps) delegated(e gateway.Status) (started agent.Event, ok bool) {
	if e.DelegationID == "" {
		return s.start(subagent, e.Text), true
	}
	if _, again := s.delegations[e.DelegationID]; again || len(s.delegations) == maxDelegations {
		return nil, false
	}
	if s.delegations == nil {
		s.delegations = map[string]string{}
	}
	step := s.start(subagent, e.Text)
	s.delegations[e.DelegationID] = step.ID
	return step, true
}

// delegationEnded ends the task that e names, or the oldest one if it names none.
func (s *steps) delegationEnded(e gateway.Status) (ended agent.Event, ok bool) {
	id, named := s.delegations[e.DelegationID]
	at := slices.IndexFunc(s.running, func(step agent.ToolStep) bool { return step.Name == subagent && (!named || step.ID == id) })
	if at < 0 {
		return nil, false
	}
	return s.stop(at, true, e.Text), true
}

// end ends everything that runs, at the end of the turn.
func (s *steps) end(completed bool) (events []agent.Event) {
	for _, step := range s.running {
		step.State = stepState(completed)
		events = append(events, step)
	}
	return events
}
