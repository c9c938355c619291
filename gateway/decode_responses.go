package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"hermes-mobile/internal/sse"
)

// responsesDecoder decodes the stream of POST /v1/responses (doc/hermes/api.md §8). Its segments
// are the message items of the response. Hermes puts all text of a turn into one item.
type responsesDecoder struct {
	hermes bool // the server is a Hermes gateway
	id     string
	reply  Reply
	items  []string // IDs of the message items, by segment
	names  map[string]string
	over   bool
	bad    bool
}

// responseFrame is one event, with the fields of all events.
type responseFrame struct {
	Type     string          `json:"type"`
	Response *responseObject `json:"response"`
	Item     *responseItem   `json:"item"`
	ItemID   string          `json:"item_id"`
	Delta    string          `json:"delta"`
	Text     string          `json:"text"`
	Refusal  string          `json:"refusal"`
	Code     string          `json:"code"`
	Error    json.RawMessage `json:"error"`
}

type responseObject struct {
	ID         string          `json:"id"`
	Status     string          `json:"status"`
	CreatedAt  float64         `json:"created_at"`
	Output     []responseItem  `json:"output"`
	Usage      *Usage          `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type responseItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	CallID    string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Status    string          `json:"status"`
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// responseEvents are the events whose fields are used.
var responseEvents = map[string]bool{
	"response.created": true, "response.output_text.delta": true, "response.output_text.done": true, "response.refusal.delta": true, "response.refusal.done": true,
	"response.reasoning_summary_text.delta": true, "response.reasoning_text.delta": true, "response.output_item.added": true, "response.output_item.done": true,
	"response.completed": true, "response.failed": true, "response.incomplete": true, "response.cancelled": true, "error": true,
}

func (d *responsesDecoder) damaged() bool { return d.bad }

func (d *responsesDecoder) decode(ev sse.Event, out []Event) []Event {
	if d.over || string(bytes.TrimSpace(ev.Data)) == "[DONE]" {
		return out
	}
	if ev.Name == "hermes.status" {
		var f hermesFrame
		if !readFrame(ev.Data, &f) {
			d.bad = true
			return out
		}
		return append(out, Status{Meta: d.meta(), Kind: f.Kind, Text: f.Text})
	}
	var f responseFrame
	whole, ok := readWhole(ev.Data, &f)
	name := f.Type
	if name == "" {
		name = ev.Name
	}
	// Other events may have other types in these fields, and no text of the reply is lost by that.
	d.bad = d.bad || !whole && (!ok || responseEvents[name])
	if !ok {
		return out
	}
	switch name {
	case "response.created":
		if f.Response != nil && d.id == "" {
			d.id = f.Response.ID
			return append(out, Started{Meta: Meta{RunID: d.id, Time: atSeconds(f.Response.CreatedAt)}})
		}
	case "response.output_text.delta", "response.refusal.delta":
		return d.add(Delta{Meta: d.message(f.ItemID), Segment: d.segment(f.ItemID), Text: f.Delta}, f.Delta, out)
	case "response.output_text.done", "response.refusal.done":
		text := f.Text + f.Refusal
		return d.add(Segment{Meta: d.message(f.ItemID), Index: d.segment(f.ItemID), Text: text}, text, out)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if f.Delta != "" {
			return append(out, Reasoning{Meta: d.meta(), Text: f.Delta})
		}
	case "response.output_item.added", "response.output_item.done":
		if f.Item != nil {
			return d.tool(name == "response.output_item.done", f.Item, out)
		}
	case "response.completed", "response.failed", "response.incomplete", "response.cancelled":
		return d.ended(strings.TrimPrefix(name, "response."), f.Response, out)
	case "error":
		message, code := findReason(ev.Data)
		return d.finish(Outcome{State: Failed, Err: &Error{Code: cmp.Or(f.Code, code), Message: cmp.Or(message, "the model gave no reply")}}, out)
	}
	return out
}

func (d *responsesDecoder) meta() Meta { return Meta{RunID: d.id} }

func (d *responsesDecoder) message(item string) Meta { return Meta{RunID: d.id, MessageID: item} }

// segment returns the number of a message item.
func (d *responsesDecoder) segment(item string) int {
	for i, id := range d.items {
		if id == item {
			return i
		}
	}
	d.items = append(d.items, item)
	return len(d.items) - 1
}

func (d *responsesDecoder) add(e Event, text string, out []Event) []Event {
	if text == "" {
		return out
	}
	d.reply.Apply(e)
	return append(out, e)
}

// tool decodes an item that is a call or its result. A call is complete when it is added, a result
// when it is done.
func (d *responsesDecoder) tool(done bool, item *responseItem, out []Event) []Event {
	switch {
	case item.Type == "function_call" && !done:
		if d.names == nil {
			d.names = map[string]string{}
		}
		d.names[item.CallID] = item.Name
		return append(out, ToolStarted{Meta: d.meta(), CallID: item.CallID, Name: item.Name, Args: arguments(item.Arguments)})
	case item.Type == "function_call_output" && done:
		return append(out, ToolEnded{Meta: d.meta(), CallID: item.CallID, Name: d.names[item.CallID], Preview: preview(outputText(item.Output))})
	}
	return out
}

func (d *responsesDecoder) ended(kind string, r *responseObject, out []Event) []Event {
	o := Outcome{State: Completed}
	if r == nil {
		r = &responseObject{}
	}
	if d.id == "" {
		d.id = r.ID
	}
	if r.Usage != nil {
		o.Usage = *r.Usage
	}
	for _, item := range r.Output {
		var texts []string
		for _, part := range item.Content {
			texts = append(texts, part.Text+part.Refusal)
		}
		if whole := strings.Join(texts, ""); item.Type == "message" && whole != "" {
			o.Segments = append(o.Segments, whole)
		}
	}
	if r.Status != "" && r.Status != "in_progress" {
		kind = r.Status
	}
	switch kind {
	case "failed":
		message, code := findReason(r.Error)
		o.State, o.Err = Failed, &Error{Code: code, Message: cmp.Or(message, "the gateway gave no reason")}
	case "incomplete":
		o.State, o.Partial, o.FinishReason, o.Err = Interrupted, true, r.Incomplete.Reason, ErrStreamBroken
	case "cancelled":
		o.State = Cancelled
	default:
		if d.hermes && r.Usage != nil && o.Usage == (Usage{}) {
			// Hermes reports a turn whose model failed as completed, with the error as the text and
			// zero usage.
			o.State, o.Err = Failed, &Error{Message: joinSegments(o.Segments)}
		}
	}
	return d.finish(o, out)
}

func (d *responsesDecoder) finish(o Outcome, out []Event) []Event {
	d.over = true
	o.ResponseID = d.id
	if o.Segments == nil {
		o.Segments = d.reply.Segments()
	}
	if o.Usage != (Usage{}) {
		out = append(out, UsageReported{Meta: d.meta(), Usage: o.Usage})
	}
	return append(out, Ended{Meta: d.meta(), Outcome: o})
}

// document decodes the response of a server that does not stream.
func (d *responsesDecoder) document(data []byte) []Event {
	var r responseObject
	if !readFrame(data, &r) || r.ID == "" {
		return nil
	}
	d.id = r.ID
	return d.ended("completed", &r, []Event{Started{Meta: Meta{RunID: d.id, Time: atSeconds(r.CreatedAt)}}})
}

func (d *responsesDecoder) end() (Outcome, bool) {
	o := brokenOutcome(Interrupted, &d.reply)
	o.ResponseID = d.id
	return o, false
}

// arguments returns a JSON object that was sent as a string.
func arguments(s string) json.RawMessage {
	if !json.Valid([]byte(s)) {
		return nil
	}
	return object(json.RawMessage(s))
}

// outputText returns the result of a call: a string or text parts.
func outputText(raw json.RawMessage) string {
	return storedRow{Content: raw}.text()
}

// maxPreview is the length to which a run shortens a result, in characters (doc/hermes/api.md §5).
const maxPreview = 500

// preview returns the first maxPreview characters of a text.
func preview(s string) string {
	n := 0
	for i := range s {
		if n == maxPreview {
			return s[:i]
		}
		n++
	}
	return s
}
