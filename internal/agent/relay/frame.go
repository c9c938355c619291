package relay

import (
	"errors"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The JSON frames of the relay contract, version 1 (doc/hermes/relay.md §3 to §6, §10). Unknown
// fields are ignored. Fields that we never send are not declared.

// envelope is every frame from the gateway. The action is decoded on its own, so that an op that
// cannot be decoded is still answered.
type envelope struct {
	Type      string         `json:"type"`
	RequestID string         `json:"requestId"`
	BufferID  string         `json:"bufferId"`
	Platform  string         `json:"platform"`
	Action    jsontext.Value `json:"action"`
}

// action is one op of the gateway.
type action struct {
	Op         string       `json:"op"`
	ChatID     string       `json:"chat_id"`
	MessageID  string       `json:"message_id"`
	Content    string       `json:"content"`
	ReplyTo    string       `json:"reply_to"`
	Emoji      string       `json:"emoji"`
	Remove     bool         `json:"remove"`
	DraftID    string       `json:"draft_id"`
	Final      bool         `json:"final"`
	PromptKind string       `json:"prompt_kind"`
	PromptID   string       `json:"prompt_id"`
	Options    []wireOption `json:"options"`
	MediaKind  string       `json:"media_kind"`
	SourceURL  string       `json:"source_url"`
	Filename   string       `json:"filename"`
	Timeout    string       `json:"timeout_s"` // of a prompt
	Metadata   metadata     `json:"metadata"`

	size      int    // bytes of the whole action, for the limits
	requestID string // of its frame
	fault     string // why it cannot be decoded; empty if it can
}

type metadata struct {
	ExpectEdits bool   `json:"expect_edits"`
	Notify      bool   `json:"notify"`
	ReplyTo     string `json:"reply_to_message_id"`
	JobID       string `json:"job_id"`
	Profile     string `json:"profile"` // of a gateway that serves several
}

type wireOption struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Style string `json:"style"`
}

// replyID returns the id of the user's message that an op belongs to, if the op names one.
func (a *action) replyID() string {
	if a.ReplyTo != "" {
		return a.ReplyTo
	}
	return a.Metadata.ReplyTo
}

// plain reports whether a send stands alone: it answers no message, notifies nobody, and announces
// no edits. Notices, questions in words, tool progress and confirmations of card answers are plain
// (doc/hermes/relay.md §4, §5).
func (a *action) plain() bool {
	return a.replyID() == "" && !a.Metadata.Notify && !a.Metadata.ExpectEdits && a.Metadata.JobID == ""
}

// transient reports whether an op is not needed any more once it has been applied.
func (a *action) transient() bool {
	switch a.Op {
	case "typing", "react":
		return true
	case "draft":
		return !a.Final
	}
	return false
}

// timeout is how long the gateway waits for the answer to a prompt, if it says so, else 0.
func (a *action) timeout() time.Duration {
	seconds, err := strconv.ParseFloat(a.Timeout, 64)
	if err != nil || !(seconds > 0) || seconds > 365*24*3600 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}

// decodeAction decodes the action of an outbound frame. An action that cannot be decoded comes back
// with its fault, and is answered with that.
func decodeAction(env *envelope) *action {
	a := &action{}
	if err := decode(env.Action, a); err != nil {
		*a = action{fault: "the action cannot be decoded"}
	} else if a.ChatID == "" {
		a.fault = "chat_id is missing"
	}
	a.size = len(env.Action)
	a.requestID = env.RequestID
	return a
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

	// A version of the contract asks for these. The measured gateways ignore unknown fields.
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

// tolerant decodes what a careless peer may send. A gateway is trusted, so everything that can be
// understood is: a later duplicate key wins, invalid UTF-8 becomes U+FFFD, a string may also be a
// number or null, and a boolean may be 0, 1 or null. The depth is bounded by jsontext.
var tolerant = json.JoinOptions(
	jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, s *string) error {
			switch d.PeekKind() {
			case '"':
				return errors.ErrUnsupported // decode it as usual
			case 'n', '0':
			default:
				return errors.New("neither a string nor a number")
			}
			v, err := d.ReadValue()
			if *s = ""; v.Kind() == '0' {
				*s = string(v)
			}
			return err
		}),
		json.UnmarshalFromFunc(func(d *jsontext.Decoder, b *bool) error {
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			switch string(v) {
			case "true", "1":
				*b = true
			case "false", "0", "null":
				*b = false
			default:
				return errors.New("not a boolean")
			}
			return nil
		}),
	)),
)

func decode(b []byte, to any) error { return json.Unmarshal(b, to, tolerant) }

// encodeResult returns the line of an outbound_result. The usual ones are written by hand: every
// edit of every streamed reply gets one.
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

// encode returns one line. The frames are ours, so it cannot fail.
func encode(frame any) []byte {
	b, err := json.Marshal(frame, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		panic("relay: " + err.Error())
	}
	return append(b, '\n')
}
