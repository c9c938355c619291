package device

import (
	"slices"
	"sync"

	"hermes-mobile/frame"
)

// Store keeps what must outlive a connection, and, when it is durable, the process. One Device uses a Store at a time; it
// may call the methods from several goroutines at once, and they must be quick: SetCursor is called for each durable event.
type Store interface {
	// Load returns everything kept. It is called once, by Open.
	Load() (Saved, error)
	// SetCursor keeps how far the app has handled events. Losing the newest one only means seeing some events again.
	SetCursor(frame.Cursor) error
	// SetToken keeps the device's own token, a secret.
	SetToken(string) error
	// Add keeps an outgoing frame behind those there are. When it returns nil the frame must survive what the Store promises.
	Add(Entry) error
	// Remove forgets an outgoing frame; one that is not there is no error.
	Remove(id string) error
}

// Saved is what a Store holds.
type Saved struct {
	Cursor frame.Cursor // of no Epoch where nothing was handled yet
	Token  string       // empty where the device has none of its own
	Queue  []Entry      // in the order they were added
}

// Entry is an outgoing frame without receipt, as it goes on the wire.
type Entry struct {
	ID    string
	Frame []byte
}

// MemoryStore is a Store that forgets everything with the process. Make it with NewMemoryStore.
type MemoryStore struct {
	mu    sync.Mutex
	saved Saved
}

// NewMemoryStore returns an empty MemoryStore.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// Load implements Store.
func (m *MemoryStore) Load() (Saved, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.saved
	s.Queue = slices.Clone(s.Queue)
	return s, nil
}

// SetCursor implements Store.
func (m *MemoryStore) SetCursor(c frame.Cursor) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Cursor = c
	return nil
}

// SetToken implements Store.
func (m *MemoryStore) SetToken(token string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Token = token
	return nil
}

// Add implements Store.
func (m *MemoryStore) Add(e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Queue = append(m.saved.Queue, e)
	return nil
}

// Remove implements Store.
func (m *MemoryStore) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved.Queue = slices.DeleteFunc(m.saved.Queue, func(e Entry) bool { return e.ID == id })
	return nil
}
