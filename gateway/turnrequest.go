package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a gateway (doc/hermes/api.md §1.2).
const (
	// MaxMessageChars is the longest message, in characters. A gateway silently cuts longer ones.
	MaxMessageChars = 65536
	// MaxRequestBytes is the largest request, in bytes. About 7 MB of images fit into it.
	MaxRequestBytes = 10_000_000
)

// Timeouts of a turn if the request sets none.
const (
	defaultIdleTimeout    = 95 * time.Second // three missed keepalives of 0.19
	defaultOutcomeTimeout = 2 * time.Minute
)

// TurnRequest describes a turn. Text or Images are required.
type TurnRequest struct {
	// SessionID is the session that stores the turn. Without one the turn runs alone, or on
	// History.
	SessionID    string
	Text         string // at most MaxMessageChars characters
	Images       []Image
	Instructions string // for this turn only
	Model        string // needs 0.22 or another kind of server
	Provider     string // as Model
	// IdempotencyKey makes a repeated start return the same run, on gateways that support it (0.22,
	// for 24 hours). Empty means a random key.
	IdempotencyKey string
	Mode           TurnMode // empty means the best one that is offered
	// History is the earlier conversation, for turns without a session.
	History []ChatMessage
	// PreviousResponseID continues a chain of ModeResponses: it is Outcome.ResponseID of the
	// previous turn. History is not sent with it.
	PreviousResponseID string
	// IdleTimeout is how long a stream may be silent; comments count. 0 means 95 seconds, because
	// 0.19 sends a comment every 30 seconds.
	IdleTimeout time.Duration
	// OutcomeTimeout is how long the outcome of a broken turn is searched while nothing changes. 0
	// means 2 minutes.
	OutcomeTimeout time.Duration
	// OnHandle, if set, is called with the handle before anything is sent, and whenever it changes.
	// Store it to resume the turn after a crash. StartTurn and the reader of Events call it.
	OnHandle func(TurnHandle)
}

// Image is a picture in a message.
type Image struct {
	MIMEType string // image/png, image/jpeg, image/gif or image/webp
	Data     []byte
}

// ChatMessage is one message of a history.
type ChatMessage struct {
	Role string `json:"role"` // user, assistant or system
	Text string `json:"content"`
}

// turnTraits are the differences between versions, as far as they are advertised (doc/hermes/api.md
// §0.7, §11).
type turnTraits struct {
	idempotent bool // runs support Idempotency-Key
	newer      bool // 0.22: it replays events, loads the sessions of runs, queues turns, and streams run IDs
	hermes     bool // it has sessions and runs at all
}

func traits(cn *conn) turnTraits {
	keyed := cn.caps.Feature("runs_idempotency")
	return turnTraits{idempotent: keyed, newer: keyed || cn.caps.Feature("run_steer"), hermes: cn.caps.Offers("runs") || cn.caps.Offers("session_chat_stream")}
}

// offers reports whether the gateway offers the mode.
func (m TurnMode) offers(caps *Capabilities) bool {
	switch m {
	case ModeRun:
		return caps.streams("runs") && caps.Offers("run_status") && caps.streams("run_events")
	case ModeSession:
		return caps.streams("session_chat_stream")
	case ModeResponses:
		return caps.streams("responses")
	case ModeCompletions:
		return caps.Offers("chat_completions")
	}
	return false
}

// operation returns the name of the call that starts a turn.
func (m TurnMode) operation() string {
	return map[TurnMode]string{ModeRun: "runs", ModeSession: "session_chat_stream", ModeResponses: "responses", ModeCompletions: "chat_completions"}[m]
}

// fits reports whether the mode can carry the whole request.
func (m TurnMode) fits(req TurnRequest) bool {
	switch m {
	case ModeRun:
		return len(req.Images) == 0 && req.PreviousResponseID == ""
	case ModeSession:
		return req.SessionID != "" && req.PreviousResponseID == ""
	case ModeResponses:
		return req.SessionID == ""
	default:
		return req.SessionID == "" && req.PreviousResponseID == ""
	}
}

// chooseMode returns the best mode, or checks the requested one.
func chooseMode(caps *Capabilities, req TurnRequest) (TurnMode, error) {
	if req.Mode != "" {
		switch {
		case req.Mode.operation() == "":
			return "", fmt.Errorf("gateway: unknown turn mode %q, use one of the Mode constants", string(req.Mode))
		case !req.Mode.offers(caps):
			return "", &UnavailableError{Operation: req.Mode.operation()}
		case !req.Mode.fits(req):
			return "", fmt.Errorf("gateway: turn mode %q cannot carry this request's session, images or previous response", string(req.Mode))
		}
		return req.Mode, nil
	}
	for _, mode := range []TurnMode{ModeRun, ModeSession, ModeResponses, ModeCompletions} {
		if mode.fits(req) && mode.offers(caps) {
			return mode, nil
		}
	}
	if req.SessionID != "" {
		return "", &UnavailableError{Operation: ModeSession.operation()}
	}
	return "", &UnavailableError{Operation: ModeCompletions.operation()}
}

// check rejects requests that the gateway would refuse or silently cut.
func (req TurnRequest) check(hosts bool) error {
	if strings.TrimSpace(req.Text) == "" && len(req.Images) == 0 {
		return errors.New("gateway: turn request has neither text nor images")
	}
	if n := utf8.RuneCountInString(req.Text); hosts && n > MaxMessageChars {
		return fmt.Errorf("%w: text has %d characters, the gateway keeps %d", ErrTooLarge, n, MaxMessageChars)
	}
	for _, image := range req.Images {
		if !strings.HasPrefix(image.MIMEType, "image/") || strings.ContainsAny(image.MIMEType, ",; \r\n") || len(image.Data) == 0 {
			return fmt.Errorf("gateway: image needs data and a MIME type such as image/png, got %d bytes of %q", len(image.Data), image.MIMEType)
		}
	}
	return nil
}

// digest identifies a text in a transcript, which may have trimmed it.
func digest(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:12])
}

func (i Image) dataURL() string {
	return "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// parts returns the message as chat parts, or as a string if there is no image.
func (req TurnRequest) parts() any {
	if len(req.Images) == 0 {
		return req.Text
	}
	var parts []any
	if req.Text != "" {
		parts = append(parts, map[string]any{"type": "text", "text": req.Text})
	}
	for _, image := range req.Images {
		parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": image.dataURL()}})
	}
	return parts
}

// body encodes the request for a mode. It is encoded once, because a repeat with the same key must
// be identical.
func (req TurnRequest) body(mode TurnMode, caps *Capabilities, history []ChatMessage) (json.RawMessage, error) {
	body := map[string]any{}
	set := func(name, value string) {
		if value != "" {
			body[name] = value
		}
	}
	set("model", req.Model)
	set("provider", req.Provider)
	switch mode {
	case ModeRun:
		body["input"] = req.Text
		set("session_id", req.SessionID)
		set("instructions", req.Instructions)
		if len(history) > 0 {
			body["conversation_history"] = history
		}
	case ModeSession:
		body["message"] = req.parts()
		set("system_message", req.Instructions)
	case ModeResponses:
		body["stream"] = true
		set("instructions", req.Instructions)
		set("previous_response_id", req.PreviousResponseID)
		body["input"] = req.responseInput()
		if req.Model == "" {
			set("model", caps.Model)
		}
	case ModeCompletions:
		body["stream"] = true
		messages := []any{}
		if req.Instructions != "" {
			messages = append(messages, ChatMessage{Role: "system", Text: req.Instructions})
		}
		for _, said := range req.History {
			messages = append(messages, said)
		}
		body["messages"] = append(messages, map[string]any{"role": "user", "content": req.parts()})
		if req.Model == "" {
			set("model", caps.Model)
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("gateway: encode request: %w", err)
	}
	if len(data) > MaxRequestBytes {
		return nil, fmt.Errorf("%w: request has %d bytes, the gateway accepts %d", ErrTooLarge, len(data), MaxRequestBytes)
	}
	return data, nil
}

// responseInput returns the input of /v1/responses: a text, or a list of messages if there is more
// than that.
func (req TurnRequest) responseInput() any {
	if len(req.Images) == 0 && (len(req.History) == 0 || req.PreviousResponseID != "") {
		return req.Text
	}
	var input []any
	if req.PreviousResponseID == "" {
		for _, said := range req.History {
			input = append(input, said)
		}
	}
	var parts []any
	if req.Text != "" {
		parts = append(parts, map[string]any{"type": "input_text", "text": req.Text})
	}
	for _, image := range req.Images {
		parts = append(parts, map[string]any{"type": "input_image", "image_url": image.dataURL()})
	}
	return append(input, map[string]any{"role": "user", "content": parts})
}

// newKey returns a new random idempotency key.
func newKey() string { return "turn-" + rand.Text() }
