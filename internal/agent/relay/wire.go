package relay

import (
	"bytes"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The JSON frames of the relay contract, version 1 (relay-facts §3 to §6, §10).
// Unknown fields are ignored; what we never send is not declared.

// loose is a string that a careless peer may also send as a number or as null.
type loose string

// UnmarshalJSON implements json.Unmarshaler.
func (l *loose) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case len(b) == 0 || bytes.Equal(b, []byte("null")):
		*l = ""
	case b[0] == '"':
		// b is a value that the decoder has checked. What needs no unquoting is not unquoted: a streamed reply brings
		// its whole text with every step.
		if bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
			*l = loose(b[1 : len(b)-1])
			return nil
		}
		var s string
		if err := json.Unmarshal(b, &s, readOptions); err != nil {
			return err
		}
		*l = loose(s)
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		if _, err := strconv.ParseFloat(string(b), 64); err != nil {
			return err
		}
		*l = loose(b)
	default:
		return errors.New("neither a string nor a number")
	}
	return nil
}

// boolean is a boolean that a careless peer may also send as null.
type boolean bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *boolean) UnmarshalJSON(b []byte) error {
	switch string(bytes.TrimSpace(b)) {
	case "true", "1":
		*f = true
	case "false", "0", "null":
		*f = false
	default:
		return errors.New("not a boolean")
	}
	return nil
}

// envelope is every frame from the gateway. The action is read on its own, so
// that an op we cannot read is still answered.
type envelope struct {
	Type      loose          `json:"type"`
	RequestID loose          `json:"requestId"`
	BufferID  loose          `json:"bufferId"`
	Platform  loose          `json:"platform"`
	Action    jsontext.Value `json:"action"`
}

type action struct {
	Op          loose        `json:"op"`
	ChatID      loose        `json:"chat_id"`
	MessageID   loose        `json:"message_id"`
	Content     loose        `json:"content"`
	ReplyTo     loose        `json:"reply_to"`
	Emoji       loose        `json:"emoji"`
	Remove      boolean      `json:"remove"`
	DraftID     loose        `json:"draft_id"`
	Final       boolean      `json:"final"`
	PromptKind  loose        `json:"prompt_kind"`
	PromptID    loose        `json:"prompt_id"`
	Options     []wireOption `json:"options"`
	MediaKind   loose        `json:"media_kind"`
	SourceURL   loose        `json:"source_url"`
	Filename    loose        `json:"filename"`
	Timeout     loose        `json:"timeout_s"` // of a prompt
	Metadata    metadata     `json:"metadata"`
	bytes       int          // of the whole action, for the limits
	requestID   string
	description string
}

type metadata struct {
	ExpectEdits boolean `json:"expect_edits"`
	Notify      boolean `json:"notify"`
	ReplyTo     loose   `json:"reply_to_message_id"`
	JobID       loose   `json:"job_id"`
	Profile     loose   `json:"profile"` // of a gateway that serves several
}

type wireOption struct {
	ID    loose `json:"id"`
	Label loose `json:"label"`
	Style loose `json:"style"`
}

// replyID is the id of the person's message that an op belongs to, if it says.
func (a *action) replyID() string {
	if a.ReplyTo != "" {
		return string(a.ReplyTo)
	}
	return string(a.Metadata.ReplyTo)
}

// plain reports whether a send stands for itself: it answers nothing, rings
// nobody, and no edits of it are announced. Notices, questions in words, tool
// progress and the receipts of card answers are such (relay-facts §4, §5).
func (a *action) plain() bool {
	return a.replyID() == "" && !bool(a.Metadata.Notify) && !bool(a.Metadata.ExpectEdits) && a.Metadata.JobID == ""
}

// Outgoing frames.

type descriptorFrame struct {
	Type       string     `json:"type"` // descriptor
	Descriptor descriptor `json:"descriptor"`
}

type descriptor struct {
	ContractVersion        int      `json:"contract_version"`
	Platform               string   `json:"platform"`
	Label                  string   `json:"label"`
	MaxMessageLength       int      `json:"max_message_length"`
	SupportsDraftStreaming bool     `json:"supports_draft_streaming"`
	SupportsEdit           bool     `json:"supports_edit"`
	SupportsThreads        bool     `json:"supports_threads"`
	MarkdownDialect        string   `json:"markdown_dialect"`
	LenUnit                string   `json:"len_unit"`
	Emoji                  string   `json:"emoji"`
	PlatformHint           string   `json:"platform_hint"`
	PIISafe                bool     `json:"pii_safe"`
	SupportedOps           []string `json:"supported_ops"`
}

type resultFrame struct {
	Type      string `json:"type"` // outbound_result
	RequestID string `json:"requestId"`
	Result    result `json:"result"`
}

type result struct {
	Success   bool      `json:"success"`
	MessageID string    `json:"message_id,omitzero"`
	Error     string    `json:"error,omitzero"`
	ChatInfo  *chatInfo `json:"chat_info,omitzero"`
}

type chatInfo struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type inboundFrame struct {
	Type     string `json:"type"` // inbound
	BufferID string `json:"bufferId"`
	Event    event  `json:"event"`
}

type event struct {
	Text           string          `json:"text"`
	MessageType    string          `json:"message_type"`
	MessageID      string          `json:"message_id"`
	Source         source          `json:"source"`
	ReplyToID      string          `json:"reply_to_message_id,omitzero"`
	ReplyTo        *quoted         `json:"reply_to,omitzero"`
	MediaURLs      []string        `json:"media_urls,omitzero"`
	Media          []wireMedia     `json:"media,omitzero"`
	PromptResponse *promptResponse `json:"prompt_response,omitzero"`
}

type source struct {
	Platform  string  `json:"platform"`
	ChatID    string  `json:"chat_id"`
	ChatType  string  `json:"chat_type"`
	ChatName  string  `json:"chat_name"`
	UserID    string  `json:"user_id"`
	UserName  string  `json:"user_name"`
	ThreadID  *string `json:"thread_id"`
	ChatTopic *string `json:"chat_topic"`
	Profile   string  `json:"profile,omitzero"`

	// A version of the contract asks for these; the measured ones ignore what they do not know.
	IsBot    bool `json:"is_bot"`
	IsEdit   bool `json:"message_is_edit"`
	Verified bool `json:"one_to_one_verified"`
}

type quoted struct {
	Text   string `json:"text"`
	Author string `json:"author"`
	IsOwn  bool   `json:"is_own"`
}

type wireMedia struct {
	URL      string `json:"url"`
	Mime     string `json:"mime"`
	Filename string `json:"filename"`
}

type promptResponse struct {
	PromptID        string `json:"prompt_id"`
	OptionID        string `json:"option_id"`
	PromptMessageID string `json:"prompt_message_id"`
}

type interruptFrame struct {
	Type       string `json:"type"` // interrupt_inbound
	SessionKey string `json:"session_key"`
	ChatID     string `json:"chat_id"`
}

// readOptions: a gateway is trusted, so what can be understood is: a later
// duplicate key wins, invalid UTF-8 becomes U+FFFD. Depth is bounded by jsontext.
var readOptions = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func decode(b []byte, to any) error { return json.Unmarshal(b, to, readOptions) }

// encodeResult makes the line of an outbound_result. The usual ones are written by hand: every step of every streamed
// reply has one.
func encodeResult(requestID string, r result) []byte {
	if r.Error == "" && r.ChatInfo == nil {
		b := append(make([]byte, 0, 128+len(requestID)+len(r.MessageID)), `{"type":"outbound_result","requestId":`...)
		b, err := jsontext.AppendQuote(b, requestID)
		b = append(b, `,"result":{"success":`...)
		b = strconv.AppendBool(b, r.Success)
		if r.MessageID != "" && err == nil {
			b = append(b, `,"message_id":`...)
			b, err = jsontext.AppendQuote(b, r.MessageID)
		}
		if err == nil {
			return append(b, "}}\n"...)
		}
	}
	return encode(resultFrame{Type: "outbound_result", RequestID: requestID, Result: r})
}

// encode makes one line. The frames are ours, so it cannot fail.
func encode(frame any) []byte {
	b, err := json.Marshal(frame, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("relay: " + err.Error())
	}
	return append(b, '\n')
}
