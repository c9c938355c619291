package device

import (
	"slices"
	"sync"

	"hermes-mobile/frame"
)

// Store holds the state that must outlive a connection and, when it is durable, the process. One
// Device uses a Store at a time. The methods must be safe for concurrent use, and quick: the device
// calls SetCursor for each durable event.
type Store interface {
	// Load returns the whole state. Open calls it once.
	Load() (Saved, error)
	// SetCursor stores how far the app has handled events. If the newest cursor gets lost, some
	// events come again.
	SetCursor(frame.Cursor) error
	// SetToken stores the device's own token, a secret.
	SetToken(string) error
	// Add appends an outgoing frame. When it returns nil, the frame must be as durable as the Store
	// promises.
	Add(Entry) error
	// Remove removes an outgoing frame. An unknown id is not an error.
	Remove(id string) error
}

// Saved is what a Store holds.
type Saved struct {
	Cursor frame.Cursor // without an Epoch where the app handled nothing yet
	Token  string       // empty where the device has no token of its own
	Queue  []Entry      // in the order of Add
}

// Entry is an outgoing frame without an ack. Frame holds its bytes on the wire.
type Entry struct {
	ID    string
	Frame []byte
}

// memoryStore is the Store of NewMemoryStore.
type memoryStore struct {
	mu    sync.Mutex
	saved Saved
}

// NewMemoryStore returns an empty [Store] that forgets everything at the end of the process.
func NewMemoryStore() Store { return &memoryStore{} }

func (m *memoryStore) Load() (Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.saved
	s.Queue = slices.Clone(s.Queue)
	return s, nil
}

func (m *memoryStore) SetCursor(c frame.Cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Cursor = c
	return nil
}

func (m *memoryStore) SetToken(token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Token = token
	return nil
}

func (m *memoryStore) Add(e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Queue = append(m.saved.Queue, e)
	return nil
}

func (m *memoryStore) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Queue = slices.DeleteFunc(m.saved.Queue, func(e Entry) bool { return e.ID == id })
	return nil
}
