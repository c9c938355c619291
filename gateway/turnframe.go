package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"hermes-mobile/internal/sse"
)

// turnFrame is the payload of an event of a session stream or of a run, with the fields of all
// events. Only message and error have several types, so they stay raw (doc/hermes/api.md §4.2, §5).
type turnFrame struct {
	Event     string  `json:"event"` // events of runs only
	SessionID string  `json:"session_id"`
	RunID     string  `json:"run_id"`
	MessageID string  `json:"message_id"`
	TS        float64 `json:"ts"`
	Timestamp float64 `json:"timestamp"`

	Delta    string          `json:"delta"`
	Text     string          `json:"text"`
	Content  string          `json:"content"`
	Output   string          `json:"output"`
	Streamed bool            `json:"already_streamed"`
	Message  json.RawMessage `json:"message"` // an object in message.started, a string in error
	Error    json.RawMessage `json:"error"`   // a bool in tool.completed, a string in run.failed
	Code     string          `json:"code"`
	Status   string          `json:"status"`

	Delegation string          `json:"delegation_id"`
	Tool       string          `json:"tool"`
	ToolName   string          `json:"tool_name"`
	Preview    string          `json:"preview"`
	Args       json.RawMessage `json:"args"`
	Duration   float64         `json:"duration"`

	Command     string   `json:"command"`
	Description string   `json:"description"`
	Patterns    []string `json:"pattern_keys"`
	Choices     []string `json:"choices"`
	RequestID   string   `json:"request_id"`
	Choice      string   `json:"choice"`
	Resolved    int      `json:"resolved"`

	Completed   *bool           `json:"completed"`
	Partial     bool            `json:"partial"`
	Interrupted bool            `json:"interrupted"`
	Reason      string          `json:"turn_exit_reason"`
	Unread      string          `json:"pending_steer"`
	Messages    *[]storedRow    `json:"messages"`
	Usage       json.RawMessage `json:"usage"`
}

// storedRow is one row of a transcript, as in GET …/messages and in the messages of run.completed.
type storedRow struct {
	ID           json.RawMessage `json:"id"`
	SessionID    string          `json:"session_id"`
	Role         string          `json:"role"`
	Content      json.RawMessage `json:"content"`
	ToolCalls    json.RawMessage `json:"tool_calls"`
	FinishReason string          `json:"finish_reason"`
	DisplayKind  string          `json:"display_kind"`
}

// text returns the text of a row: a string, or the text parts of a list.
func (r storedRow) text() string {
	if s := text(r.Content); s != "" {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(r.Content, &parts) != nil {
		return ""
	}
	var texts []string
	for _, p := range parts {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// calls reports whether the row calls a tool.
func (r storedRow) calls() bool {
	var calls []json.RawMessage
	return json.Unmarshal(r.ToolCalls, &calls) == nil && len(calls) > 0
}

// isReply reports whether the row belongs to the reply that the user reads (doc/hermes/api.md §3,
// display_kind).
func (r storedRow) isReply() bool {
	return r.Role == "assistant" && r.DisplayKind != "hidden" && r.DisplayKind != "failed_turn" && strings.TrimSpace(r.text()) != ""
}

// readFrame decodes a payload. It ignores fields of unexpected types, and returns false if the
// payload is no JSON object.
func readFrame(data []byte, out any) bool {
	err := json.Unmarshal(data, out)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return other.Field != ""
	}
	return err == nil
}

// readWhole decodes a payload like readFrame. whole is false if a part could not be decoded, so
// that text may be missing.
func readWhole(data []byte, out any) (whole, ok bool) {
	err := json.Unmarshal(data, out)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return false, other.Field != ""
	}
	return err == nil, err == nil
}

func (f *turnFrame) meta() Meta {
	at := f.TS
	if at == 0 {
		at = f.Timestamp
	}
	return Meta{SessionID: f.SessionID, RunID: f.RunID, MessageID: f.MessageID, Time: atSeconds(at)}
}

// atSeconds converts a time in float seconds (doc/hermes/api.md §12.11).
func atSeconds(at float64) time.Time {
	if at <= 0 || at > 1e11 {
		return time.Time{}
	}
	return time.UnixMicro(int64(at * 1e6)).UTC()
}

func (f *turnFrame) approval() Approval {
	return Approval{Command: f.Command, Description: f.Description, Patterns: f.Patterns, Choices: f.Choices, asked: approvalKey{id: f.RequestID, at: f.Timestamp}}
}

func (f *turnFrame) usage() (u Usage) {
	readFrame(f.Usage, &u)
	return u
}

// outcome returns the outcome of a terminal event, without the text.
func (f *turnFrame) outcome(state TurnState) Outcome {
	o := Outcome{State: state, Partial: f.Partial, FinishReason: f.Reason, Usage: f.usage(), SessionID: f.SessionID, UnreadSteer: f.Unread}
	if state == Completed && f.Completed != nil && !*f.Completed {
		o.State = Failed
		if f.Interrupted || f.Partial {
			o.State = Interrupted
		}
	}
	if o.State == Failed || o.State == Interrupted {
		message := text(f.Error)
		if message == "" {
			message = "the turn ended early"
		}
		o.Err = &Error{Code: f.Code, Message: message}
	}
	return o
}

// subagent returns the event of a subagent's task.
func (f *turnFrame) subagent(meta Meta, kind string) Status {
	return Status{Meta: meta, Kind: kind, Text: cmp.Or(f.Text, f.Preview), DelegationID: f.Delegation}
}

// runStates are the terminal events of runs and session streams.
var runStates = map[string]TurnState{"run.completed": Completed, "run.failed": Failed, "run.cancelled": Cancelled, "run.interrupted": Interrupted}

// turnText numbers the segments of a reply while it streams, and collects their text.
type turnText struct {
	reply   Reply
	current int
	has     bool // the current segment has text
	tool    bool // a tool call came after the last text
}

// next starts a new segment after a tool call.
func (t *turnText) next() {
	if t.tool && t.has {
		t.current++
		t.has = false
	}
	t.tool = false
}

// delta adds streamed text. After a tool call the gateway sends an empty line first, which is not
// part of the segment.
func (t *turnText) delta(meta Meta, text string, out []Event) []Event {
	if t.tool {
		text = strings.TrimPrefix(text, "\n\n")
	}
	if text == "" {
		return out
	}
	t.next()
	t.has = true
	return t.add(Delta{Meta: meta, Segment: t.current, Text: text}, out)
}

// whole sets the final text of the current segment.
func (t *turnText) whole(meta Meta, text string, out []Event) []Event {
	if text == "" {
		return out
	}
	t.next()
	t.has = true
	return t.add(Segment{Meta: meta, Index: t.current, Text: text}, out)
}

// commentary sets the whole text next to a tool call, whether it was streamed before or not.
func (t *turnText) commentary(meta Meta, text string, streamed bool, out []Event) []Event {
	if text == "" {
		return out
	}
	if t.has && !streamed {
		t.tool = true
	}
	t.next()
	t.has, t.tool = true, true
	return t.add(Commentary{Meta: meta, Index: t.current, Text: text}, out)
}

// any reports whether there is text.
func (t *turnText) any() bool { return t.has || t.current > 0 }

// message sets the whole text of the reply, parts of which may have been streamed. After tool calls
// it adds only the new part, because the earlier text was already emitted.
func (t *turnText) message(meta Meta, text string, out []Event) []Event {
	if !t.tool && t.current == 0 {
		return t.whole(meta, text, out)
	}
	said := t.reply.Text()
	rest, goesOn := strings.CutPrefix(strings.TrimSpace(text), strings.TrimSpace(said))
	if said == "" || goesOn && strings.TrimSpace(rest) != "" {
		return t.delta(meta, strings.TrimLeft(rest, "\r\n"), out)
	}
	return out
}

func (t *turnText) add(e Event, out []Event) []Event {
	t.reply.Apply(e)
	return append(out, e)
}

// turnDecoder decodes the events of one stream into events of a turn. It ignores what follows the
// end.
type turnDecoder interface {
	// decode appends the events that ev means to out.
	decode(ev sse.Event, out []Event) []Event
	// end returns the outcome if the stream ended without [Ended]. sure is false if the outcome
	// should be looked up.
	end() (o Outcome, sure bool)
	// damaged reports whether a frame could not be decoded, so that text may be missing.
	damaged() bool
}

// brokenOutcome returns the outcome of a stream that ended without one.
func brokenOutcome(state TurnState, reply *Reply) Outcome {
	return Outcome{State: state, Segments: reply.Segments(), Err: ErrStreamBroken}
}
