package gateway

import (
	"hermes-mobile/internal/onepass"
	"hermes-mobile/internal/sse"
)

// sessionDecoder decodes POST /api/sessions/{id}/chat/stream (doc/hermes/api.md §4).
type sessionDecoder struct {
	sessionID string
	runID     string // of this turn, set by run.started
	messageID string // of the last plain delta
	text      turnText
	parser    onepass.Parser
	streamed  bool   // a delta was received
	held      string // text of assistant.completed, until run.* says whether it is a reply or an error
	heldMeta  Meta
	whole     bool // assistant.completed says that the reply is complete
	over      bool
	bad       bool
}

func (d *sessionDecoder) damaged() bool { return d.bad }

func (d *sessionDecoder) decode(ev sse.Event, out []Event) []Event {
	if d.over {
		return out
	}
	var f turnFrame
	if !readFrame(ev.Data, &f) {
		d.bad = true
		return out
	}
	if d.foreign(ev.Name, &f) {
		return out
	}
	meta := f.meta()
	switch ev.Name {
	case "run.started":
		d.runID = f.RunID
		return append(out, Started{Meta: meta})
	case "assistant.delta":
		d.streamed = d.streamed || f.Delta != ""
		return d.text.delta(meta, f.Delta, out)
	case "assistant.commentary":
		return d.text.commentary(meta, f.Text, f.Streamed, out)
	case "reasoning.delta":
		if piece := f.Delta + f.Text; piece != "" {
			return append(out, Reasoning{Meta: meta, Text: piece})
		}
	case "tool.started":
		d.text.tool = true
		return append(out, ToolStarted{Meta: meta, Name: f.ToolName, Preview: f.Preview, Args: object(f.Args)})
	case "tool.completed", "tool.failed":
		d.text.tool = true
		return append(out, ToolEnded{Meta: meta, Name: f.ToolName, Failed: ev.Name == "tool.failed", Preview: f.Preview})
	case "approval.request":
		return append(out, ApprovalRequested{Meta: meta, Approval: f.approval()})
	case "run.queued":
		return append(out, Status{Meta: meta, Kind: StatusQueued, Text: f.Status})
	case StatusSubagentStarted, StatusSubagentEnded:
		return append(out, f.subagent(meta, ev.Name))
	case "assistant.completed":
		d.held, d.heldMeta, d.whole = f.Content, meta, f.Completed == nil || *f.Completed
	case "error":
		return d.finish(meta, Outcome{State: Failed, Segments: d.text.reply.Segments(), SessionID: d.sessionID, Err: failure(&f)}, out)
	default:
		if state, ok := runStates[ev.Name]; ok {
			return d.ended(&f, meta, state, out)
		}
		// message.started and done add nothing to the other events; tool.progress repeats visible
		// text.
	}
	return out
}

// foreign reports whether an event belongs to another turn. A gateway that continues in a new
// session, because it compressed the old one, names the new session in the terminal events of the
// same run. Those are not foreign (doc/hermes/api.md §12.11).
func (d *sessionDecoder) foreign(name string, f *turnFrame) bool {
	if d.runID != "" && f.RunID != "" && f.RunID != d.runID {
		return true
	}
	if f.SessionID == "" || f.SessionID == d.sessionID {
		return false
	}
	_, terminal := runStates[name]
	return !(terminal || name == "assistant.completed") || d.runID == "" || f.RunID != d.runID
}

// ended decodes run.completed and the other terminal events.
func (d *sessionDecoder) ended(f *turnFrame, meta Meta, state TurnState, out []Event) []Event {
	o := f.outcome(state)
	if o.State == Completed && f.Messages != nil && len(*f.Messages) == 0 && !d.streamed {
		// 0.19 reports a turn whose model failed as completed, with the error as the reply
		// (doc/hermes/api.md §4.4).
		o.State = Failed
	}
	if o.State == Failed {
		if message := d.held; message != "" {
			o.Err = &Error{Code: f.Code, Message: message}
		} else if o.Err == nil {
			o.Err = &Error{Code: f.Code, Message: "the model gave no reply"}
		}
		o.Segments = d.text.reply.Segments()
		return d.finish(meta, o, out)
	}
	out = d.release(out)
	o.Segments = d.segments(f.Messages)
	return d.finish(meta, o, out)
}

// segments returns the whole reply: the rows that the gateway stored, except for the last segment.
// There assistant.completed is used, which contains images in full (doc/hermes/api.md §4.3, §4.7).
func (d *sessionDecoder) segments(rows *[]storedRow) []string {
	if rows == nil {
		return d.text.reply.Segments()
	}
	var segments []string
	last := false // the last row with text is the end of the reply
	for _, row := range *rows {
		if row.isReply() {
			segments = append(segments, row.text())
		}
		if row.Role == "assistant" || row.Role == "tool" {
			last = row.isReply() && !row.calls()
		}
	}
	switch {
	case d.held == "":
	case last:
		segments[len(segments)-1] = d.held
	default:
		segments = append(segments, d.held)
	}
	return segments
}

// release emits the text of assistant.completed.
func (d *sessionDecoder) release(out []Event) []Event {
	return d.text.whole(d.heldMeta, d.held, out)
}

func (d *sessionDecoder) finish(meta Meta, o Outcome, out []Event) []Event {
	d.over = true
	if o.SessionID == "" {
		o.SessionID = d.sessionID
	}
	if o.Usage != (Usage{}) {
		out = append(out, UsageReported{Meta: meta, Usage: o.Usage})
	}
	return append(out, Ended{Meta: meta, Outcome: o})
}

// end returns what is known when the stream ends without run.*, for one of the reasons in
// doc/hermes/api.md §4.6.
func (d *sessionDecoder) end() (Outcome, bool) {
	if d.whole {
		d.release(nil)
		return Outcome{State: Completed, Segments: d.text.reply.Segments(), SessionID: d.sessionID}, false
	}
	d.release(nil)
	o := brokenOutcome(Unknown, &d.text.reply)
	o.SessionID = d.sessionID
	return o, false
}

// failure returns the error of an error event.
func failure(f *turnFrame) *Error {
	e := &Error{Code: f.Code, Message: text(f.Message)}
	if e.Message == "" {
		e.Message = text(f.Error)
	}
	if e.Message == "" {
		e.Message = "the gateway gave no reason"
	}
	return e
}
