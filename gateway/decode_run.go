package gateway

import (
	"encoding/json"
	"time"

	"hermes-mobile/internal/onepass"
	"hermes-mobile/internal/sse"
)

// runDecoder decodes GET /v1/runs/{id}/events (doc/hermes/api.md §5).
type runDecoder struct {
	sessionID string
	runID     string
	text      turnText
	parser    onepass.Parser
	over      bool
	bad       bool
}

func (d *runDecoder) damaged() bool { return d.bad }

func (d *runDecoder) decode(ev sse.Event, out []Event) []Event {
	if d.over {
		return out
	}
	var f turnFrame
	if !readFrame(ev.Data, &f) {
		d.bad = true
		return out
	}
	if f.RunID != "" && f.RunID != d.runID {
		return out
	}
	meta := f.meta()
	meta.Position, meta.SessionID = string(ev.ID), d.sessionID
	switch f.Event {
	case "message.delta":
		return d.text.delta(meta, f.Delta, out)
	case "message.interim":
		return d.text.commentary(meta, f.Text, f.Streamed, out)
	case "reasoning.delta":
		if piece := f.Delta + f.Text; piece != "" {
			return append(out, Reasoning{Meta: meta, Text: piece})
		}
	case "tool.started":
		d.text.tool = true
		return append(out, ToolStarted{Meta: meta, Name: f.Tool, Preview: f.Preview, Args: object(f.Args)})
	case "tool.completed", "tool.failed":
		d.text.tool = true
		return append(out, ToolEnded{Meta: meta, Name: f.Tool, Failed: string(f.Error) == "true" || f.Event == "tool.failed",
			Duration: duration(f.Duration), Preview: f.Preview})
	case "approval.request":
		return append(out, ApprovalRequested{Meta: meta, Approval: f.approval()})
	case "approval.responded":
		return append(out, ApprovalAnswered{Meta: meta, Choice: f.Choice, count: f.Resolved})
	case "run.steered":
		return append(out, Status{Meta: meta, Kind: StatusSteered})
	case "run.queued":
		return append(out, Status{Meta: meta, Kind: StatusQueued, Text: f.Status})
	case StatusSubagentStarted, StatusSubagentEnded:
		return append(out, f.subagent(meta, f.Event))
	case "replay.truncated":
		meta.Position = ""
		return append(out, Gap{Meta: meta})
	default:
		if state, ok := runStates[f.Event]; ok {
			return d.ended(&f, meta, state, out)
		}
		// reasoning.available repeats visible text.
	}
	return out
}

func (d *runDecoder) ended(f *turnFrame, meta Meta, state TurnState, out []Event) []Event {
	d.over = true
	o := f.outcome(state)
	if o.SessionID == "" {
		o.SessionID = d.sessionID
	}
	out = d.text.whole(meta, f.Output, out)
	o.Segments = d.text.reply.Segments()
	if o.Usage != (Usage{}) {
		out = append(out, UsageReported{Meta: meta, Usage: o.Usage})
	}
	return append(out, Ended{Meta: meta, Outcome: o})
}

func (d *runDecoder) end() (Outcome, bool) {
	o := brokenOutcome(Unknown, &d.text.reply)
	o.SessionID = d.sessionID
	return o, false
}

// duration converts float seconds.
func duration(s float64) time.Duration {
	if s <= 0 || s > 1e9 {
		return 0
	}
	return time.Duration(s * float64(time.Second))
}

// object returns raw if it is a JSON object.
func object(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	return raw
}
