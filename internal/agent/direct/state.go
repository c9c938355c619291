package direct

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"hermes-mobile/gateway"
)

// Store holds what a restart must not lose: one small value for each conversation. Its methods may
// be called concurrently.
type Store interface {
	// Load returns a value, nil if there is none.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save returns once the value is on disk.
	Save(ctx context.Context, key string, value []byte) error
}

// conversation is the stored state of a device's conversation.
type conversation struct {
	Session string `json:"session,omitempty"` // of the gateway
	// Sessions are those created here, the oldest first: what this conversation may see unless it
	// sees all.
	Sessions []string     `json:"sessions,omitempty"`
	Model    string       `json:"model,omitempty"`
	Provider string       `json:"provider,omitempty"`
	Turn     *startedTurn `json:"turn,omitempty"`
	// History and Response are sent again to a gateway without sessions.
	History  []gateway.ChatMessage `json:"history,omitempty"`
	Response string                `json:"response,omitempty"`
	Usage    []usage               `json:"usage,omitempty"` // of the last turns, the oldest first
}

// startedTurn is a turn that was started at the gateway and has not ended here.
type startedTurn struct {
	N       int64               `json:"n"`
	Handle  *gateway.TurnHandle `json:"lease,omitempty"`  // nil: the gateway does not have it
	Asked   []string            `json:"asked,omitempty"`  // IDs of the approvals that were shown
	Learned bool                `json:"learnt,omitempty"` // recordOutcome has run
	Tries   int                 `json:"tries,omitempty"`  // how often it failed because the gateway was still loading

	// The parameters of the start: a repeat must have the same ones.
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// usage is the number of tokens of a turn.
type usage struct {
	ID     string `json:"id,omitempty"` // of the user's message
	Input  int64  `json:"input_tokens"`
	Output int64  `json:"output_tokens"`
	Total  int64  `json:"total_tokens"`
	Model  string `json:"model,omitempty"`
}

// addSession adds a session to the conversation.
func (c *conversation) addSession(session string) {
	if !slices.Contains(c.Sessions, session) {
		c.Sessions = append(slices.Clone(c.Sessions), session)
	}
}

const (
	maxSessions = 1000
	maxUsage    = 20
)

// memory holds the state of the conversations. It loads each once, and stores changes before
// anything depends on them.
type memory struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	known map[string]*conversation
}

func newMemory(keep Store, log *slog.Logger) *memory {
	return &memory{store: keep, log: log, known: map[string]*conversation{}}
}

// get returns a copy of the state of a device's conversation.
func (m *memory) get(ctx context.Context, device string) (conversation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.load(ctx, device)
	if err != nil {
		return conversation{}, err
	}
	return *c, nil
}

func (m *memory) load(ctx context.Context, device string) (*conversation, error) {
	if c := m.known[device]; c != nil {
		return c, nil
	}
	data, err := m.store.Load(ctx, device)
	if err != nil {
		return nil, fmt.Errorf("the state of the conversation cannot be read: %w", err)
	}
	c := &conversation{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, c); err != nil {
			// It would stay unreadable, and block the conversation for good.
			m.log.Error("conversation state corrupt, resetting", "device", device, "err", err)
			c = &conversation{}
		}
	}
	m.known[device] = c
	return c, nil
}

// change stores a changed conversation. If that fails, nothing changes.
func (m *memory) change(ctx context.Context, device string, f func(*conversation)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, err := m.load(ctx, device)
	if err != nil {
		return err
	}
	next := *old
	f(&next)
	if n := len(next.Sessions); n > maxSessions {
		next.Sessions = next.Sessions[n-maxSessions:]
	}
	if n := len(next.Usage); n > maxUsage {
		next.Usage = next.Usage[n-maxUsage:]
	}
	data, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("the state of the conversation cannot be stored: %w", err)
	}
	if err := m.store.Save(ctx, device, data); err != nil {
		return fmt.Errorf("the state of the conversation cannot be stored: %w", err)
	}
	m.known[device] = &next
	return nil
}
