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

// Message is one stored row of a session (doc/hermes/api.md §3). The stored messages are the authoritative text of
// a conversation; the deltas of a stream are not.
type Message struct {
	ID           int64
	SessionID    string
	Role         string // user, assistant or tool
	Content      string // empty if the row only calls tools; images come back as the word [screenshot]
	ToolCalls    []ToolCall
	ToolCallID   string // of a tool's result
	ToolName     string
	Time         time.Time
	FinishReason string // stop or tool_calls; empty if the turn was interrupted
	Reasoning    string
	Display      string // since 0.22: hidden (don't show it) or failed_turn (stored for a turn that failed)
}

// ToolCall is a call of a tool that the model requested.
type ToolCall struct {
	ID, Name  string
	Arguments string // JSON
}

// UnmarshalJSON decodes the form that the gateway sends.
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
		At           jsonTime        `json:"timestamp"`
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
		Time: w.At.Time, FinishReason: w.FinishReason, Reasoning: text(w.Reasoning), Display: w.Display,
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

// contentText returns the text of a message: a JSON string, or the text parts of a list.
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

// maxMessages is the largest page of messages.
const maxMessages = 500

// MessageQuery selects messages of a session. A page is always in the order in which the messages were stored.
type MessageQuery struct {
	Limit  int  // messages per page: 0 means 500, which is also the maximum
	Offset int  // messages to skip, from the first one, or with Latest from the last one
	Latest bool // selects the last messages instead of the first ones
}

// MessagePage is one page of messages.
type MessagePage struct {
	SessionID string // of these messages; a compressed session continues under another ID
	Moved     bool   // SessionID is not the one that was asked for: use SessionID from now on
	Messages  []Message
	More      bool // there may be more messages, away from the end that Offset counts from
}

// Messages returns one page of the messages of a session. Gateways of 0.19 always send all messages, so Messages
// cuts the page out of them: the result is the same with every version.
func (s *SessionService) Messages(ctx context.Context, sessionID string, q MessageQuery) (MessagePage, error) {
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
	if err := s.client.do(ctx, "session_messages", []string{"session_id", sessionID}, query, nil, &list); err != nil {
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

// AllMessages yields every message of a session, from the first one on, each once. It follows a session that
// continues under another ID; [Message.SessionID] names the session of each message. An error is yielded last.
func (s *SessionService) AllMessages(ctx context.Context, sessionID string) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		yielded := map[int64]bool{}
		for offset := 0; ; offset += maxMessages {
			page, err := s.Messages(ctx, sessionID, MessageQuery{Offset: offset})
			if err != nil {
				yield(Message{}, err)
				return
			}
			sessionID = page.SessionID
			fresh := false
			for _, m := range page.Messages {
				if yielded[m.ID] {
					continue
				}
				yielded[m.ID], fresh = true, true
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
