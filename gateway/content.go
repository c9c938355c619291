package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
)

// looseString is a string that is empty if the JSON value has another type: servers send numbers
// and nulls as IDs and texts.
type looseString string

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (l *looseString) UnmarshalJSON(data []byte) error {
	*l = looseString(text(data))
	return nil
}

// looseNumber is a number that is 0 if the JSON value has another type.
type looseNumber float64

// UnmarshalJSON implements [json.Unmarshaler] and never fails.
func (l *looseNumber) UnmarshalJSON(data []byte) error {
	var n float64
	if json.Unmarshal(data, &n) != nil {
		n = 0
	}
	*l = looseNumber(n)
	return nil
}

// messageContent is the content of a message: a string, or a list of parts, as reasoning models of
// several providers send it.
type messageContent struct {
	text      string
	reasoning string
	lossy     bool // a part could not be shown as text
}

// UnmarshalJSON implements [json.Unmarshaler]. It never fails: it marks what it cannot read as
// lost.
func (c *messageContent) UnmarshalJSON(data []byte) error {
	*c = messageContent{}
	c.read(bytes.TrimSpace(data), maxReasonDepth)
	return nil
}

// contentPart is one part of a content: text, or reasoning that consists of parts itself.
type contentPart struct {
	Type     looseString     `json:"type"`
	Text     json.RawMessage `json:"text"`
	Thinking json.RawMessage `json:"thinking"`
	Refusal  looseString     `json:"refusal"`
	Content  json.RawMessage `json:"content"`
}

func (c *messageContent) read(data json.RawMessage, depth int) {
	if len(data) == 0 || string(data) == "null" {
		return
	}
	switch {
	case data[0] == '"':
		c.text += text(data)
	case data[0] == '[' && depth > 0:
		var parts []json.RawMessage
		if json.Unmarshal(data, &parts) != nil {
			c.lossy = true
			return
		}
		for _, part := range parts {
			c.read(bytes.TrimSpace(part), depth-1)
		}
	case data[0] == '{' && depth > 0:
		c.part(data, depth)
	default:
		c.lossy = true
	}
}

// part reads one part by its type. Everything in a reasoning part is reasoning, whatever its form.
func (c *messageContent) part(data json.RawMessage, depth int) {
	var p contentPart
	if json.Unmarshal(data, &p) != nil {
		c.lossy = true
		return
	}
	kind := strings.ToLower(string(p.Type))
	if strings.Contains(kind, "think") || strings.Contains(kind, "reason") {
		var inner messageContent
		for _, raw := range []json.RawMessage{p.Thinking, p.Text, p.Content} {
			inner.read(bytes.TrimSpace(raw), depth-1)
		}
		c.reasoning += inner.text + inner.reasoning
		c.lossy = c.lossy || inner.lossy
		return
	}
	switch {
	case p.Refusal != "":
		c.text += string(p.Refusal)
	case p.Text != nil:
		c.read(bytes.TrimSpace(p.Text), depth-1)
	case p.Content != nil:
		c.read(bytes.TrimSpace(p.Content), depth-1)
	default:
		c.lossy = true // an image or a tool call
	}
}
