package gateway

import (
	"encoding/json"
	"strings"
	"time"
)

// Event is an event of a turn: one of [Started], [Delta], [Segment], [Commentary], [Reasoning],
// [ToolStarted], [ToolEnded], [ApprovalRequested], [ApprovalAnswered], [Status], [Gap],
// [UsageReported] and [Ended]. Events are values and share nothing with the turn.
//
// The text of a turn is a sequence of segments: a tool call starts a new one. [Reply] assembles
// them.
type Event interface {
	// At returns where the event belongs.
	At() Meta

	// stamp returns the event with other meta data.
	stamp(Meta) Event
}

// Meta says where an event belongs. Fields that the gateway does not send are empty.
type Meta struct {
	SessionID string
	RunID     string
	MessageID string
	// Position is the place in the stream, for [Client.ResumeTurn]. Only runs of gateways that
	// replay events have one (doc/hermes/api.md §5).
	Position string
	Time     time.Time
}

// At returns m.
func (m Meta) At() Meta { return m }

// Started means that the gateway accepted the turn. The model may not run yet (doc/hermes/api.md
// §12.7).
type Started struct {
	Meta
}

// Delta is text to append to a segment.
type Delta struct {
	Meta
	Segment int // from 0
	Text    string
}

// Segment is the whole text of a segment. It replaces the text of earlier deltas.
type Segment struct {
	Meta
	Index int // from 0
	Text  string
}

// Commentary is the whole text that the model wrote next to a tool call. Like [Segment] it replaces
// the text of earlier deltas, so streamed text never appears twice.
type Commentary struct {
	Meta
	Index int
	Text  string
}

// Reasoning is a piece of the model's reasoning, to append. It is not part of the reply.
type Reasoning struct {
	Meta
	Text string
}

// ToolStarted means that a tool runs. Gateways send it only if they advertise tool_progress_events.
type ToolStarted struct {
	Meta
	CallID  string // ID of the call; often empty, then tools end in the order they started
	Name    string
	Preview string          // one line for people
	Args    json.RawMessage // a JSON object; nil if the gateway does not send it
}

// ToolEnded means that a tool has ended. Gateways send it only if they advertise
// tool_progress_events.
type ToolEnded struct {
	Meta
	CallID   string
	Name     string
	Failed   bool
	Duration time.Duration // 0 if the gateway does not send it
	Preview  string        // the beginning of the result; can be empty
}

// ApprovalRequested means that the turn waits for [Turn.Answer] with the ID of the approval.
type ApprovalRequested struct {
	Meta
	Approval Approval
}

// Approval is a request to approve a command. The gateway does not send its deadline: by default it
// waits 60 seconds (0.19) or 300 seconds (0.22) (doc/hermes/api.md §6).
type Approval struct {
	ID          string // never empty; unique within the turn
	Command     string // redacted by the gateway
	Description string
	Patterns    []string // the rules that matched
	Choices     []string // of once, session, always and deny

	asked approvalKey
}

// ApprovalAnswered means that an approval was answered, by this client or another one.
type ApprovalAnswered struct {
	Meta
	ApprovalID string // empty if it was answered before this client saw it
	Choice     string

	count int // how many approvals the gateway says this answered
}

// Status reports the progress of a turn.
type Status struct {
	Meta
	Kind string // one of the constants below, or a kind of the gateway's own
	Text string // can be empty
	// DelegationID identifies the task of a subagent. Only the two kinds about subagents have it,
	// and only on newer gateways.
	DelegationID string
}

// Kinds of [Status] that this package knows.
const (
	StatusReconnecting = "reconnecting"         // the stream broke and is being reopened
	StatusSettling     = "settling"             // the stream is gone and the outcome is being looked up
	StatusWaiting      = "waiting_for_approval" // the run waits for an approval whose request did not arrive here
	StatusSteered      = "steered"
	StatusQueued       = "queued"

	// A subagent got a task, and ended it. Gateways send both only if they advertise
	// tool_progress_events.
	StatusSubagentStarted = "subagent.start"
	StatusSubagentEnded   = "subagent.complete"
)

// Gap means that events are missing before the next one. The [Ended] of the turn has the full text.
type Gap struct {
	Meta
}

// Usage counts tokens. Gateways report zeros for turns that failed or were stopped
// (doc/hermes/api.md §12.12).
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Total      int `json:"total_tokens"`
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
}

// UsageReported is the usage of the turn so far. The [Ended] that follows has it too.
type UsageReported struct {
	Meta
	Usage Usage
}

// Ended is the last event of a turn.
type Ended struct {
	Meta
	Outcome Outcome
}

// TurnState is how a turn ended.
type TurnState string

// The states of an [Outcome].
const (
	Completed   TurnState = "completed"
	Failed      TurnState = "failed"      // the model or the gateway failed; Err says why
	Cancelled   TurnState = "cancelled"   // a user stopped it
	Interrupted TurnState = "interrupted" // it ended early; Segments holds what there was
	Unknown     TurnState = "unknown"     // the gateway does not say, or not yet: Reconcile may tell later
	Absent      TurnState = "absent"      // the gateway has no trace of it: it did not run
)

// Outcome is the result of a turn.
type Outcome struct {
	State        TurnState
	Segments     []string // the whole reply; for states other than Completed, what there was
	Partial      bool     // the reply is incomplete
	FinishReason string   // why the model stopped, in the gateway's words; often empty
	Usage        Usage
	// SessionID is the session that stores the turn. It differs from that of the request if the
	// gateway continued in a new session (doc/hermes/api.md §12.11). Send the next turn there.
	SessionID string
	// ResponseID continues a chain of ModeResponses: it is the PreviousResponseID of the next
	// TurnRequest.
	ResponseID string
	// UnreadSteer is the text that [Turn.Steer] sent too late for the model to read. Line feeds
	// separate several texts.
	UnreadSteer string `json:",omitzero"`
	// Err is nil for Completed and Cancelled. Otherwise it is an [*Error] if the gateway gave a
	// reason, or [ErrStreamBroken].
	Err error `json:"-"`
}

// Text returns the reply for display: the segments, separated by empty lines.
func (o Outcome) Text() string { return joinSegments(o.Segments) }

// Reply assembles the text of a turn from its events. The zero value is an empty reply. It must not
// be used concurrently.
type Reply struct {
	segments []*strings.Builder
}

// Apply adds the next event. Events without text change nothing.
func (r *Reply) Apply(e Event) {
	switch e := e.(type) {
	case Delta:
		r.append(e.Segment, e.Text)
	case Segment:
		r.replace(e.Index, e.Text)
	case Commentary:
		r.replace(e.Index, e.Text)
	case Ended:
		if segments := e.Outcome.Segments; len(segments) > 0 {
			r.segments = nil
			for i, text := range segments {
				r.append(i, text)
			}
		}
	}
}

func (r *Reply) append(index int, text string) {
	for len(r.segments) <= index {
		r.segments = append(r.segments, new(strings.Builder))
	}
	r.segments[index].WriteString(text)
}

func (r *Reply) replace(index int, text string) {
	if index < len(r.segments) {
		r.segments[index] = new(strings.Builder)
	}
	r.append(index, text)
}

// Segments returns the segments that have text.
func (r *Reply) Segments() []string {
	var out []string
	for _, s := range r.segments {
		if text := s.String(); strings.TrimSpace(text) != "" {
			out = append(out, text)
		}
	}
	return out
}

// Text returns the whole text so far, for display.
func (r *Reply) Text() string {
	all := make([]string, len(r.segments))
	for i, s := range r.segments {
		all[i] = s.String()
	}
	return joinSegments(all)
}

func joinSegments(segments []string) string {
	var b strings.Builder
	for _, s := range segments {
		if s = strings.TrimRight(s, " \t\r\n"); s == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(s)
	}
	return b.String()
}

func (e Started) stamp(m Meta) Event           { e.Meta = m; return e }
func (e Delta) stamp(m Meta) Event             { e.Meta = m; return e }
func (e Segment) stamp(m Meta) Event           { e.Meta = m; return e }
func (e Commentary) stamp(m Meta) Event        { e.Meta = m; return e }
func (e Reasoning) stamp(m Meta) Event         { e.Meta = m; return e }
func (e ToolStarted) stamp(m Meta) Event       { e.Meta = m; return e }
func (e ToolEnded) stamp(m Meta) Event         { e.Meta = m; return e }
func (e ApprovalRequested) stamp(m Meta) Event { e.Meta = m; return e }
func (e ApprovalAnswered) stamp(m Meta) Event  { e.Meta = m; return e }
func (e Status) stamp(m Meta) Event            { e.Meta = m; return e }
func (e Gap) stamp(m Meta) Event               { e.Meta = m; return e }
func (e UsageReported) stamp(m Meta) Event     { e.Meta = m; return e }
func (e Ended) stamp(m Meta) Event             { e.Meta = m; return e }
