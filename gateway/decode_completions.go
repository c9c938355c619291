package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"hermes-mobile/internal/onepass"
	"hermes-mobile/internal/sse"
)

// completionsDecoder decodes the stream of POST /v1/chat/completions, from Hermes
// (doc/hermes/api.md §7) and from every other server with that API.
type completionsDecoder struct {
	id     string
	at     time.Time
	text   turnText
	parser onepass.Parser
	finish string // finish_reason; set once the reply is complete
	usage  Usage
	marked bool // the stream said that the reply is complete
	over   bool
	bad    bool // something could not be decoded, so text may be missing
}

// completionFrame is one chunk, a whole completion, or one of the named events of Hermes.
type completionFrame struct {
	ID      looseString        `json:"id"`
	Object  looseString        `json:"object"`
	Choices []completionChoice `json:"choices"`
	Created looseNumber        `json:"created"`
	Usage   *completionUsage   `json:"usage"`
	Error   json.RawMessage    `json:"error"`
	Hermes  struct {
		Failed bool        `json:"failed"`
		Error  looseString `json:"error"`
		Code   looseString `json:"error_code"`
	} `json:"hermes"`
}

type completionChoice struct {
	Index   looseNumber     `json:"index"`
	Delta   completionText  `json:"delta"`
	Message *completionText `json:"message"`
	Text    messageContent  `json:"text"` // of the legacy completions API
	Finish  looseString     `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
}

type completionText struct {
	Content          messageContent `json:"content"`
	ReasoningContent looseString    `json:"reasoning_content"`
	Reasoning        looseString    `json:"reasoning"`
	Refusal          looseString    `json:"refusal"` // what the model says instead of an answer
}

// reply returns the text for the user.
func (t *completionText) reply() string { return t.Content.text + string(t.Refusal) }

func (t *completionText) reasoning() string {
	return t.Content.reasoning + cmp.Or(string(t.ReasoningContent), string(t.Reasoning))
}

type completionUsage struct {
	Prompt     looseNumber `json:"prompt_tokens"`
	Completion looseNumber `json:"completion_tokens"`
	Total      looseNumber `json:"total_tokens"`
}

// hermesFrame is a named event that Hermes adds to OpenAI's stream.
type hermesFrame struct {
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	Tool   string `json:"tool"`
	Label  string `json:"label"`
	CallID string `json:"toolCallId"`
	Status string `json:"status"`
}

func (d *completionsDecoder) damaged() bool { return d.bad }

func (d *completionsDecoder) decode(ev sse.Event, out []Event) []Event {
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
	if ev.Name == "error" {
		message, code := findReason(ev.Data)
		return d.fail(Meta{MessageID: d.id}, message, code, out)
	}
	var f completionFrame
	whole, ok := readWhole(ev.Data, &f)
	d.bad = d.bad || !whole
	if !ok {
		return out
	}
	if len(f.Choices) == 0 && f.Usage == nil && !f.Hermes.Failed { // an error in a form of its own, or nothing
		if message, code := findReason(ev.Data); message != "" {
			return d.fail(Meta{MessageID: d.id}, message, code, out)
		}
	}
	return d.chunk(&f, out)
}

// named decodes an event that only Hermes sends.
func (d *completionsDecoder) named(ev sse.Event, out []Event) []Event {
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
		return append(out, ToolStarted{Meta: meta, CallID: f.CallID, Name: f.Tool, Preview: f.Label})
	case f.Status == "completed", f.Status == "failed":
		d.text.tool = true
		return append(out, ToolEnded{Meta: meta, CallID: f.CallID, Name: f.Tool, Failed: f.Status == "failed"})
	}
	return out
}

func (d *completionsDecoder) chunk(f *completionFrame, out []Event) []Event {
	meta := Meta{MessageID: string(f.ID), Time: atSeconds(float64(f.Created))}
	if d.id == "" && f.ID != "" {
		d.id, d.at = string(f.ID), meta.Time
		out = append(out, Started{Meta: meta})
	}
	if f.Usage != nil {
		d.usage = Usage{Input: int(f.Usage.Prompt), Output: int(f.Usage.Completion), Total: int(f.Usage.Total)}
	}
	message, code := findReason(f.Error)
	failed := len(f.Error) > 0 && string(f.Error) != "null" && string(f.Error) != "false" && string(f.Error) != `""`
	for i := range f.Choices {
		choice := &f.Choices[i]
		if choice.Index != 0 {
			continue // the request asks for one reply only
		}
		out = d.choice(meta, choice, out)
		if reason, word := findReason(choice.Error); reason != "" {
			message, code, failed = cmp.Or(message, reason), cmp.Or(code, word), true
		}
	}
	if failed || f.Hermes.Failed || d.finish == "error" {
		return d.fail(meta, cmp.Or(string(f.Hermes.Error), message), cmp.Or(string(f.Hermes.Code), code), out)
	}
	return out
}

// choice decodes one choice of a chunk. A delta is a piece of text. A message is the whole text and
// replaces the pieces, unless it comes with a delta that has text.
func (d *completionsDecoder) choice(meta Meta, c *completionChoice, out []Event) []Event {
	d.bad = d.bad || c.Delta.Content.lossy || c.Text.lossy
	if thought := c.Delta.reasoning(); thought != "" {
		out = append(out, Reasoning{Meta: meta, Text: thought})
	}
	piece := c.Delta.reply() + c.Text.text
	switch {
	case piece != "" || c.Message == nil:
		out = d.text.delta(meta, piece, out)
	default:
		d.bad = d.bad || c.Message.Content.lossy
		if thought := c.Message.reasoning(); thought != "" && c.Delta.reasoning() == "" && !d.text.any() {
			out = append(out, Reasoning{Meta: meta, Text: thought})
		}
		out = d.text.message(meta, c.Message.reply(), out)
	}
	if c.Finish != "" {
		d.finish, d.marked = string(c.Finish), true
	}
	return out
}

// fail ends the turn with the server's error.
func (d *completionsDecoder) fail(meta Meta, message, code string, out []Event) []Event {
	d.over = true
	return append(out, Ended{Meta: meta, Outcome: Outcome{State: Failed, Segments: d.text.reply.Segments(), Usage: d.usage,
		Err: &Error{Code: code, Message: cmp.Or(message, "the model gave no reply")}}})
}

// close emits the end of the turn. Usage chunks may come between the last text and the end mark.
func (d *completionsDecoder) close(out []Event) []Event {
	d.over = true
	o, _ := d.end()
	meta := Meta{MessageID: d.id, Time: d.at}
	if o.Usage != (Usage{}) {
		out = append(out, UsageReported{Meta: meta, Usage: o.Usage})
	}
	return append(out, Ended{Meta: meta, Outcome: o})
}

// document decodes the response of a server that does not stream. It ignores what follows the JSON
// value, such as an end mark.
func (d *completionsDecoder) document(data []byte) []Event {
	var value json.RawMessage
	if json.NewDecoder(bytes.NewReader(data)).Decode(&value) != nil {
		return nil
	}
	out := d.decode(sse.Event{Data: value}, nil)
	if d.over {
		return out
	}
	if !d.text.any() && d.finish == "" && !d.bad && len(out) == 0 {
		return nil // this is no completion
	}
	d.marked = true
	return d.close(out)
}

func (d *completionsDecoder) end() (Outcome, bool) {
	if !d.marked {
		return brokenOutcome(Interrupted, &d.text.reply), false
	}
	return Outcome{State: Completed, Segments: d.text.reply.Segments(), Usage: d.usage, FinishReason: d.finish, Partial: d.bad || cutShort(d.finish)}, true
}

// cutShort reports whether a finish_reason says that the reply is incomplete.
func cutShort(reason string) bool {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "content_filter":
		return true
	}
	return false
}
