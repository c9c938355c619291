package ratelimit

import "container/list"

// Table is a map with a maximum size that forgets the least recently used key. It isn't safe for
// concurrent use.
type Table[K comparable, V any] struct {
	most    int
	entries map[K]*list.Element
	order   *list.List // of *entry[K, V], the most recently used in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// NewTable returns a table for at most a number of keys.
func NewTable[K comparable, V any](most int) *Table[K, V] {
	return &Table[K, V]{most: most, entries: map[K]*list.Element{}, order: list.New()}
}

// Len returns how many keys there are.
func (t *Table[K, V]) Len() int { return len(t.entries) }

// Get returns the value of a key, or nil. The key doesn't count as used.
func (t *Table[K, V]) Get(key K) *V {
	if e, ok := t.entries[key]; ok {
		return &e.Value.(*entry[K, V]).value
	}
	return nil
}

// spareTries is how many entries Touch looks at for one that may go.
const spareTries = 64

// Touch returns the value of a key, a zero value if it is new, and marks the key as used. In a full
// table the oldest entry goes that spare doesn't keep. If spare keeps all of the oldest, the very
// oldest goes. A nil spare keeps none.
func (t *Table[K, V]) Touch(key K, spare func(*V) bool) *V {
	if e, ok := t.entries[key]; ok {
		t.order.MoveToFront(e)
		return &e.Value.(*entry[K, V]).value
	}
	if len(t.entries) >= t.most {
		victim := t.order.Back()
		for e, n := victim, 0; spare != nil && e != nil && n < spareTries; e, n = e.Prev(), n+1 {
			if !spare(&e.Value.(*entry[K, V]).value) {
				victim = e
				break
			}
		}
		t.remove(victim)
	}
	n := &entry[K, V]{key: key}
	t.entries[key] = t.order.PushFront(n)
	return &n.value
}

// sweepStep is how many entries one Sweep removes: more than one call adds, so the table shrinks,
// and few enough that no call takes long.
const sweepStep = 8

// Sweep removes some of the oldest entries for which over reports true.
func (t *Table[K, V]) Sweep(over func(*V) bool) {
	for range sweepStep {
		e := t.order.Back()
		if e == nil || !over(&e.Value.(*entry[K, V]).value) {
			return
		}
		t.remove(e)
	}
}

// Remove removes a key.
func (t *Table[K, V]) Remove(key K) {
	if e, ok := t.entries[key]; ok {
		t.remove(e)
	}
}

func (t *Table[K, V]) remove(e *list.Element) {
	delete(t.entries, e.Value.(*entry[K, V]).key)
	t.order.Remove(e)
	if len(t.entries) == 0 {
		t.entries = map[K]*list.Element{} // a Go map never shrinks
	}
}
