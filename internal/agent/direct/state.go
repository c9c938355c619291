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

// Keep is where the agent remembers what a restart must not forget: one small value a conversation. Its methods may be
// called concurrently.
type Store interface {
	// Load returns a value, nil where there is none.
	Load(ctx context.Context, key string) ([]byte, error)
	// Save returns when the value is on the disk.
	Save(ctx context.Context, key string, value []byte) error
}

// conversation is what is remembered of one device's conversation.
type conversation struct {
	Session string `json:"session,omitempty"` // of the gateway
	// Sessions are those that were made here, the oldest first: what this conversation may see where it does not see all.
	Sessions []string     `json:"sessions,omitempty"`
	Model    string       `json:"model,omitempty"`
	Provider string       `json:"provider,omitempty"`
	Turn     *startedTurn `json:"turn,omitempty"`
	// History and Response are what a gateway without sessions is told again.
	History  []gateway.ChatMessage `json:"history,omitempty"`
	Response string                `json:"response,omitempty"`
	Usage    []usage               `json:"usage,omitempty"` // of the last turns, the oldest first
}

// begun is a turn that was begun at the gateway and has no end here yet.
type startedTurn struct {
	N       int64               `json:"n"`
	Handle  *gateway.TurnHandle `json:"lease,omitempty"`  // nil: the gateway does not have it
	Asked   []string            `json:"asked,omitempty"`  // approvals that were shown, by id
	Learned bool                `json:"learnt,omitempty"` // what it leaves for the next turn is kept
	Tries   int                 `json:"tries,omitempty"`  // times that the gateway failed at it because it was still loading

	// What it was begun with, for a repeat of the start has to be the same.
	Model    string `json:"model,omitempty"`
	Provider string `json:"provider,omitempty"`
}

// usage is what a turn cost.
type usage struct {
	ID     string `json:"id,omitempty"` // of the person's message
	Input  int64  `json:"input_tokens"`
	Output int64  `json:"output_tokens"`
	Total  int64  `json:"total_tokens"`
	Model  string `json:"model,omitempty"`
}

// own makes a session one of the conversation.
func (c *conversation) addSession(session string) {
	if !slices.Contains(c.Sessions, session) {
		c.Sessions = append(slices.Clone(c.Sessions), session)
	}
}

const (
	maxSessions = 1000
	maxUsage    = 20
)

// memory holds the conversations, read once and written before anything depends on them.
type memory struct {
	store Store
	log   *slog.Logger

	mu    sync.Mutex
	known map[string]*conversation
}

func newMemory(keep Store, log *slog.Logger) *memory {
	return &memory{store: keep, log: log, known: map[string]*conversation{}}
}

// get returns a copy of what is known of a device's conversation.
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
		return nil, fmt.Errorf("what is known of the conversation cannot be read: %w", err)
	}
	c := &conversation{}
	if len(data) > 0 {
		if err := json.Unmarshal(data, c); err != nil {
			// It would never be readable again, and the conversation with it.
			m.log.Error("what was known of a conversation is damaged, it begins anew", "device", device, "error", err)
			c = &conversation{}
		}
	}
	m.known[device] = c
	return c, nil
}

// change stores a changed conversation. Where it cannot be stored nothing is changed.
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
		return fmt.Errorf("the conversation cannot be stored: %w", err)
	}
	if err := m.store.Save(ctx, device, data); err != nil {
		return fmt.Errorf("the conversation cannot be stored: %w", err)
	}
	m.known[device] = &next
	return nil
}
