package gateway

import (
	"encoding/json"
	"strings"
	"time"
)

// Event is something that happened in a turn: one of [Started], [Delta], [Segment], [Commentary], [Reasoning],
// [ToolStarted], [ToolEnded], [ApprovalRequested], [ApprovalAnswered], [Status], [Gap], [UsageReported] and [Ended].
// Events are values; nothing in them is shared with the turn.
//
// The text of a turn is a row of segments: a tool call begins a new one. [Reply] puts them together.
type Event interface {
	// At says where the event belongs.
	At() Meta

	// stamp is the event with other meta data.
	stamp(Meta) Event
}

// Meta is where an event belongs. What the gateway does not say is empty.
type Meta struct {
	SessionID string
	RunID     string
	MessageID string
	// Position is the place in the stream, for [Client.ResumeTurn]. Only runs of gateways that replay have one (api-facts §5).
	Position string
	Time     time.Time
}

// At returns the meta data itself.
func (m Meta) At() Meta { return m }

// Started says that the gateway took the turn. It does not mean that the model runs (api-facts §12.7).
type Started struct {
	Meta
}

// Delta is text to append to a segment.
type Delta struct {
	Meta
	Segment int // from 0
	Text    string
}

// Segment is the whole text of a segment. It replaces what deltas made of it.
type Segment struct {
	Meta
	Index int // from 0
	Text  string
}

// Commentary is the whole text that stood beside a tool call. Like [Segment] it replaces what deltas made of the segment,
// so text that was streamed before is never doubled.
type Commentary struct {
	Meta
	Index int
	Text  string
}

// Reasoning is a piece of what the model thought, to append. It is no part of the reply.
type Reasoning struct {
	Meta
	Text string
}

// ToolStarted says that a tool runs. It comes only where the gateway advertises tool_progress_events.
type ToolStarted struct {
	Meta
	CallID  string // id of the call; often not said, then a tool ends in the order it began
	Name    string
	Preview string          // one line for people
	Args    json.RawMessage // a JSON object; nil where it is not said
}

// ToolEnded says that a tool is done. It comes only where the gateway advertises tool_progress_events.
type ToolEnded struct {
	Meta
	CallID   string
	Name     string
	Failed   bool
	Duration time.Duration // 0 where it is not said
	Preview  string        // the beginning of the result, where it is said
}

// ApprovalRequested says that the turn waits for an answer: [Turn.Answer] with the id of the approval.
type ApprovalRequested struct {
	Meta
	Approval Approval
}

// Approval is a question whether a command may run. It has no deadline on the wire: a gateway gives up after 60 s (0.19) or
// 300 s (0.22) where its settings say nothing else (api-facts §6).
type Approval struct {
	ID          string // never empty, and of this approval only within its turn
	Command     string // redacted by the gateway
	Description string
	Patterns    []string // why it is asked
	Choices     []string // of once, session, always, deny

	asked approvalKey
}

// ApprovalAnswered says that an approval was answered, by this client or another.
type ApprovalAnswered struct {
	Meta
	ApprovalID string // empty where it was answered before this client saw it
	Choice     string

	count int // how many the gateway says this answered
}

// Status is a word for people about what goes on.
type Status struct {
	Meta
	Kind string // see the constants; others come from the gateway
	Text string // may be empty
	// Delegation is the id of the task that was given to another agent, of the two kinds that are about one; newer gateways have it.
	DelegationID string
}

// Kinds of [Status] that this package makes.
const (
	StatusReconnecting = "reconnecting"         // the stream broke, and is opened anew
	StatusSettling     = "settling"             // the stream is gone: the outcome is looked up
	StatusWaiting      = "waiting_for_approval" // the run waits for an answer to a question that did not arrive here
	StatusSteered      = "steered"
	StatusQueued       = "queued"

	// A task was given to another agent of the gateway, and it is done. Both come only where the gateway advertises tool events.
	StatusSubagentStarted = "subagent.start"
	StatusSubagentEnded   = "subagent.complete"
)

// Gap says that events are missing before the next one. The text is put right by the [Ended] of the turn.
type Gap struct {
	Meta
}

// Usage counts tokens. Gateways report zeros for turns that failed or were stopped (api-facts §12.12).
type Usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	Total      int `json:"total_tokens"`
	CacheRead  int `json:"cache_read_tokens"`
	CacheWrite int `json:"cache_write_tokens"`
}

// UsageReported says what the turn took so far. The [Ended] that follows has it too.
type UsageReported struct {
	Meta
	Usage Usage
}

// Ended is the last event of a turn.
type Ended struct {
	Meta
	Outcome Outcome
}

// State is how a turn ended.
type TurnState string

// The states of an [Outcome].
const (
	Completed   TurnState = "completed"
	Failed      TurnState = "failed"      // the model or gateway could not; Err says why
	Cancelled   TurnState = "cancelled"   // stopped by somebody
	Interrupted TurnState = "interrupted" // it ended in the middle; what there was is in Segments
	Unknown     TurnState = "unknown"     // the gateway does not say, or not yet: Reconcile may say more later
	Absent      TurnState = "absent"      // the gateway has no trace of it: it was not run
)

// Outcome is what became of a turn.
type Outcome struct {
	State        TurnState
	Segments     []string // the reply, whole; for other states than Completed what there was
	Partial      bool     // the gateway says that the reply is not whole
	FinishReason string   // why the model ended, in the gateway's word; often empty
	Usage        Usage
	// SessionID is where the turn is stored. It differs from that of the request where the gateway went on in a new
	// session (api-facts §12.11): the next turn belongs there.
	SessionID string
	// ResponseID continues a chain of WayResponses: the next TurnRequest's Previous.
	ResponseID string
	// Unread is what [Turn.Steer] gave the turn too late: the model did not read it. Several texts have a line feed between them.
	UnreadSteer string `json:",omitzero"`
	// Err is set for every other state than Completed and Cancelled: an [*Error] where the gateway said why, else [ErrCut].
	Err error `json:"-"`
}

// Text is the reply as a person reads it: the segments with an empty line between them.
func (o Outcome) Text() string { return joinSegments(o.Segments) }

// Reply puts the events of a turn together to what a person reads. The zero value is an empty reply. It may not be used
// concurrently.
type Reply struct {
	segments []*strings.Builder
}

// Apply takes the next event. Events without text change nothing.
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

// Text is the whole text so far.
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
