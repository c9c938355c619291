package gateway

import (
	"bytes"
	"encoding/json"
	"time"

	"hermes-mobile/internal/onepass"
)

// completionsDecoder reads the stream of POST /v1/chat/completions, of Hermes (api-facts §7) and of every other server that
// speaks it.
type completionsDecoder struct {
	id     string
	at     time.Time
	text   turnText
	parser onepass.Parser
	finish string // finish_reason; not empty once the reply is whole
	usage  Usage
	marked bool // the stream said that the reply is whole
	over   bool
	bad    bool
}

// completionFrame is one chunk, or a whole completion, or one of the named events of Hermes.
type completionFrame struct {
	ID      string `json:"id"`
	Choices []struct {
		Index   int             `json:"index"`
		Delta   completionText  `json:"delta"`
		Message *completionText `json:"message"`
		Finish  string          `json:"finish_reason"`
	} `json:"choices"`
	Created float64          `json:"created"`
	Usage   *completionUsage `json:"usage"`
	Error   json.RawMessage  `json:"error"`
	Hermes  struct {
		Failed bool   `json:"failed"`
		Error  string `json:"error"`
		Code   string `json:"error_code"`
	} `json:"hermes"`
}

type completionText struct {
	Content   string `json:"content"`
	Reasoning string `json:"reasoning_content"`
}

type completionUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// hermesFrame is a named event of Hermes in a stream that is OpenAI's otherwise.
type hermesFrame struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	Label  string `json:"label"`
	CallID string `json:"toolCallId"`
	Status string `json:"status"`
}

func (d *completionsDecoder) damaged() bool { return d.bad }

func (d *completionsDecoder) decode(ev ServerEvent, out []Event) []Event {
	if d.over {
		return out
	}
	switch ev.Name {
	case "hermes.tool.progress", "hermes.status":
		return d.named(ev, out)
	case "approval.request":
		var f turnFrame
		if !readFrame(ev.Data, &f) {
			d.bad = true
			return out
		}
		return append(out, ApprovalRequested{Meta: f.meta(), Approval: f.approval()})
	}
	if string(bytes.TrimSpace(ev.Data)) == "[DONE]" {
		d.marked = true
		return d.close(out)
	}
	var f completionFrame
	if !readFrame(ev.Data, &f) {
		d.bad = true
		return out
	}
	return d.chunk(&f, out)
}

// named reads an event that only Hermes sends.
func (d *completionsDecoder) named(ev ServerEvent, out []Event) []Event {
	var f hermesFrame
	if !readFrame(ev.Data, &f) {
		d.bad = true
		return out
	}
	meta := Meta{MessageID: d.id}
	switch {
	case ev.Name == "hermes.status":
		return append(out, Status{Meta: meta, Kind: f.Kind, Text: f.Text})
	case f.Status == "running":
		d.text.tool = true
		return append(out, ToolStarted{Meta: meta, Call: f.CallID, Name: f.Tool, Preview: f.Label})
	case f.Status == "completed", f.Status == "failed":
		d.text.tool = true
		return append(out, ToolEnded{Meta: meta, Call: f.CallID, Name: f.Tool, Failed: f.Status == "failed"})
	}
	return out
}

func (d *completionsDecoder) chunk(f *completionFrame, out []Event) []Event {
	meta := Meta{MessageID: f.ID, Time: atSeconds(f.Created)}
	if d.id == "" && f.ID != "" {
		d.id, d.at = f.ID, meta.Time
		out = append(out, Started{Meta: meta})
	}
	if f.Usage != nil {
		d.usage = Usage{Input: f.Usage.Prompt, Output: f.Usage.Completion, Total: f.Usage.Total}
		d.marked = d.marked || len(f.Choices) == 0 // a chunk of its own comes when the reply is whole
	}
	for _, choice := range f.Choices {
		if choice.Index != 0 {
			continue // one reply is asked for
		}
		piece := choice.Delta
		if choice.Message != nil {
			piece = *choice.Message
		}
		if piece.Reasoning != "" {
			out = append(out, Reasoning{Meta: meta, Text: piece.Reasoning})
		}
		out = d.text.delta(meta, piece.Content, out)
		if choice.Finish != "" {
			d.finish, d.marked = choice.Finish, true
		}
	}
	if message := errorText(f.Error); message != "" || f.Hermes.Failed || d.finish == "error" {
		if f.Hermes.Error != "" {
			message = f.Hermes.Error
		}
		if message == "" {
			message = "the model gave no reply"
		}
		d.over = true
		return append(out, Ended{Meta: meta, Outcome: Outcome{State: Failed, Segments: d.text.reply.Segments(), Usage: d.usage,
			Err: &Error{Code: f.Hermes.Code, Message: message}}})
	}
	return out
}

// close gives out the end. Chunks of the usage may come between the last of the text and the end mark.
func (d *completionsDecoder) close(out []Event) []Event {
	d.over = true
	o, _ := d.end()
	meta := Meta{MessageID: d.id, Time: d.at}
	if o.Usage != (Usage{}) {
		out = append(out, UsageReported{Meta: meta, Usage: o.Usage})
	}
	return append(out, Ended{Meta: meta, Outcome: o})
}

// document reads the answer of a server that does not stream.
func (d *completionsDecoder) document(data []byte) []Event {
	var f completionFrame
	if !readFrame(data, &f) || len(f.Choices) == 0 && len(f.Error) == 0 {
		return nil
	}
	out := d.chunk(&f, nil)
	if !d.over {
		d.marked = true
		out = d.close(out)
	}
	return out
}

func (d *completionsDecoder) end() (Outcome, bool) {
	if !d.marked {
		return cut(Interrupted, &d.text.reply), false
	}
	return Outcome{State: Completed, Segments: d.text.reply.Segments(), Usage: d.usage, Reason: d.finish, Partial: d.finish == "length" || d.bad}, true
}

// errorText is the message of an error that is an object or a string; empty where there is none.
func errorText(raw json.RawMessage) string {
	if s := text(raw); s != "" {
		return s
	}
	var e struct {
		Message string `json:"message"`
		Code    string `json:"code"`
	}
	switch {
	case len(raw) == 0 || raw[0] != '{':
		return ""
	case readFrame(raw, &e) && e.Message != "":
		return e.Message
	case e.Code != "":
		return e.Code
	}
	return "the gateway gave no reason"
}
