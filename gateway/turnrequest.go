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

// Limits of a gateway (api-facts §1.2).
const (
	// MaxText is the most characters of one message: what is longer would be cut without a word.
	MaxMessageChars = 65536
	// MaxBody is the most bytes of one request. About 7 MB of images fit.
	MaxRequestBytes = 10_000_000
)

// What a lease has where the request does not say.
const (
	defaultIdleTimeout    = 95 * time.Second // three missed keepalives of 0.19
	defaultOutcomeTimeout = 2 * time.Minute
)

// TurnRequest is what a turn is to be run with.
type TurnRequest struct {
	// SessionID is the session that the turn belongs to. Without one it is run by itself, or on History.
	SessionID    string
	Text         string // up to MaxText characters
	Images       []Image
	Instructions string // for this turn only; may be empty
	Model        string // honoured by 0.22 and later, and by other servers
	Provider     string // as Model
	// Key makes the turn the same one when it is started again, where the gateway knows keys (0.22: 24 h). Empty: one is made.
	IdempotencyKey string
	Mode           TurnMode // empty: the best that is offered
	// History is what was said before, for turns without a session.
	History []ChatMessage
	// Previous is the response before, for WayResponses: Outcome.ResponseID. History is not sent along with it.
	PreviousResponseID string
	// Idle is how long a stream may be silent, comments counted as life. 0: 95 s, for 0.19 sends a comment each 30 s.
	IdleTimeout time.Duration
	// Patience is how long the outcome of a broken turn is looked for while nothing moves. 0: 2 minutes.
	OutcomeTimeout time.Duration
	// OnLease, where set, is called with the lease before anything is sent, and again whenever the lease changes. A program
	// that stores it comes back to the turn after a crash. It is called by StartTurn and by the reader of Events.
	OnHandle func(TurnHandle)
}

// Image is a picture of a message.
type Image struct {
	MIMEType string // image/png, image/jpeg, image/gif or image/webp
	Data     []byte
}

// Said is one message of a history.
type ChatMessage struct {
	Role string `json:"role"` // user, assistant or system
	Text string `json:"content"`
}

// turnTraits are the differences of versions, by what is advertised (api-facts §0.7, §11).
type turnTraits struct {
	idempotent bool // Idempotency-Key of runs is honoured
	newer      bool // 0.22: replay, sessions loaded by runs, a lock of turns, run ids of streams
	hermes     bool // it has sessions and runs at all
}

func traits(cn *conn) turnTraits {
	keyed := cn.caps.Feature("runs_idempotency")
	return turnTraits{idempotent: keyed, newer: keyed || cn.caps.Feature("run_steer"), hermes: cn.caps.Offers("runs") || cn.caps.Offers("session_chat_stream")}
}

// offers reports whether a way is there.
func (w TurnMode) offers(caps *Capabilities) bool {
	switch w {
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

// operation is the name of the call that starts a turn.
func (w TurnMode) operation() string {
	return map[TurnMode]string{ModeRun: "runs", ModeSession: "session_chat_stream", ModeResponses: "responses", ModeCompletions: "chat_completions"}[w]
}

// fits reports whether a request can go this way without a loss.
func (w TurnMode) fits(req TurnRequest) bool {
	switch w {
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

// chooseWay picks the best way, or checks the one that is asked for.
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
	for _, way := range []TurnMode{ModeRun, ModeSession, ModeResponses, ModeCompletions} {
		if way.fits(req) && way.offers(caps) {
			return way, nil
		}
	}
	if req.SessionID != "" {
		return "", &UnavailableError{Operation: ModeSession.operation()}
	}
	return "", &UnavailableError{Operation: ModeCompletions.operation()}
}

// check refuses what the gateway would refuse or silently cut.
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

// digest knows a text again in a transcript, where it may have lost blanks at its ends.
func digest(text string) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(text)))
	return hex.EncodeToString(sum[:12])
}

func (i Image) dataURL() string {
	return "data:" + i.MIMEType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// parts is the message as chat parts; a string where there is no image.
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

// body is the request of a way, marshalled once: a repeat with the same key must be the same to the byte.
func (req TurnRequest) body(way TurnMode, caps *Capabilities, history []ChatMessage) (json.RawMessage, error) {
	body := map[string]any{}
	set := func(name, value string) {
		if value != "" {
			body[name] = value
		}
	}
	set("model", req.Model)
	set("provider", req.Provider)
	switch way {
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

// responseInput is the input of /v1/responses: a text, or messages where there is more than that.
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

// newKey is a key of idempotency that nobody used before.
func newKey() string { return "turn-" + rand.Text() }
