package gateway

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Message is one stored row of a session (api-facts §3). What the gateway stored is the truth of a conversation; what was
// streamed is not.
type Message struct {
	ID           int64
	SessionID    string
	Role         string // user, assistant or tool
	Content      string // empty where the row is a tool call only; pictures come back as the word [screenshot]
	ToolCalls    []ToolCall
	ToolCallID   string // of a tool's answer
	ToolName     string
	At           time.Time
	FinishReason string // stop, tool_calls; empty where the turn was interrupted
	Reasoning    string
	Display      string // 0.22: hidden (do not show), failed_turn (written for a turn that failed)
}

// ToolCall is a call that a model asked for.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON
}

// UnmarshalJSON reads the gateway's form.
func (m *Message) UnmarshalJSON(data []byte) error {
	var w struct {
		ID        int64           `json:"id"`
		SessionID string          `json:"session_id"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		Calls     []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
		ToolCallID   string          `json:"tool_call_id"`
		ToolName     string          `json:"tool_name"`
		At           instant         `json:"timestamp"`
		FinishReason string          `json:"finish_reason"`
		Reasoning    json.RawMessage `json:"reasoning"`
		Other        json.RawMessage `json:"reasoning_content"`
		Display      string          `json:"display_kind"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*m = Message{
		ID: w.ID, SessionID: w.SessionID, Role: w.Role, Content: contentText(w.Content), ToolCallID: w.ToolCallID, ToolName: w.ToolName,
		At: w.At.Time, FinishReason: w.FinishReason, Reasoning: text(w.Reasoning), Display: w.Display,
	}
	if m.Reasoning == "" {
		m.Reasoning = text(w.Other)
	}
	for _, call := range w.Calls {
		arguments := text(call.Function.Arguments)
		if arguments == "" && len(call.Function.Arguments) > 0 && call.Function.Arguments[0] == '{' {
			arguments = string(call.Function.Arguments)
		}
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: arguments})
	}
	return nil
}

// contentText is the text of a message: a string, or the text of its parts.
func contentText(raw json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return text(raw)
	}
	var texts []string
	for _, part := range parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// maxMessages is the most messages of a page.
const maxMessages = 500

// MessageQuery says which messages are wanted, always in the order in which they were written.
type MessageQuery struct {
	Limit  int  // 500 where it is 0, and at most
	Offset int  // from the beginning, or with Latest from the end
	Latest bool // the last ones instead of the first
}

// MessagePage is a part of a session's messages.
type MessagePage struct {
	SessionID string // whose messages these are: a session that was compressed goes on under another id
	Moved     bool   // SessionID is not the one that was asked for; use it from here on
	Messages  []Message
	More      bool // there may be more beyond the page, away from the end it was counted from
}

// Messages returns messages of a session. 0.19 always sends all of them; what was asked for is cut out here then, so the
// page is the same with each version.
func (c *Client) Messages(ctx context.Context, sessionID string, q MessageQuery) (MessagePage, error) {
	limit, offset := q.Limit, max(q.Offset, 0)
	if limit <= 0 || limit > maxMessages {
		limit = maxMessages
	}
	query := url.Values{"limit": {strconv.Itoa(limit)}, "order": {"oldest"}}
	if q.Latest {
		query.Set("order", "latest")
	}
	if offset > 0 {
		query.Set("offset", strconv.Itoa(offset))
	}
	var list struct {
		SessionID  string           `json:"session_id"`
		Data       []Message        `json:"data"`
		Pagination *json.RawMessage `json:"pagination"`
	}
	if err := c.ask(ctx, "session_messages", []string{"session_id", sessionID}, query, nil, &list); err != nil {
		return MessagePage{}, err
	}
	page := MessagePage{SessionID: list.SessionID, Messages: list.Data}
	if page.SessionID == "" {
		page.SessionID = sessionID
	}
	page.Moved = page.SessionID != sessionID
	if list.Pagination != nil {
		page.More = len(list.Data) >= limit
		return page, nil
	}
	all := list.Data
	offset = min(offset, len(all))
	if q.Latest {
		end := len(all) - offset
		page.Messages = all[max(end-limit, 0):end]
	} else {
		page.Messages = all[offset:min(offset+limit, len(all))]
	}
	page.More = len(all)-offset > limit
	return page, nil
}

// AllMessages yields the messages of a session from the first one on, each once. An error ends it. A session that goes on under
// another id is followed; each message says whose it is.
func (c *Client) AllMessages(ctx context.Context, sessionID string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		had := map[int64]bool{}
		for offset := 0; ; offset += maxMessages {
			page, err := c.Messages(ctx, sessionID, MessageQuery{Offset: offset})
			if err != nil {
				yield(Message{}, err)
				return
			}
			sessionID = page.SessionID
			fresh := false
			for _, m := range page.Messages {
				if had[m.ID] {
					continue
				}
				had[m.ID], fresh = true, true
				if !yield(m, nil) {
					return
				}
			}
			if !page.More || !fresh {
				return
			}
		}
	}
}
