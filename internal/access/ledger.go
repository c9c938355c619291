package access

import "container/list"

// ledger is a bounded map that forgets what was not touched for longest. It is
// not safe for concurrent use.
type ledger[K comparable, V any] struct {
	limit   int
	entries map[K]*list.Element
	order   *list.List // of *record[K, V], the last touched in front
}

type record[K comparable, V any] struct {
	key   K
	value V
}

func newLedger[K comparable, V any](limit int) *ledger[K, V] {
	return &ledger[K, V]{limit: limit, entries: map[K]*list.Element{}, order: list.New()}
}

// get gives the value of a key, nil where there is none, and does not touch it.
func (l *ledger[K, V]) get(key K) *V {
	if e, ok := l.entries[key]; ok {
		return &e.Value.(*record[K, V]).value
	}
	return nil
}

// spareTries is how many entries are looked at for one that may go.
const spareTries = 64

// touch gives the value of a key, made where there is none, and marks it as
// the newest. Where the ledger is full the oldest goes that spare does not
// hold back; if it holds back all of the oldest, the very oldest goes.
func (l *ledger[K, V]) touch(key K, spare func(*V) bool) *V {
	if e, ok := l.entries[key]; ok {
		l.order.MoveToFront(e)
		return &e.Value.(*record[K, V]).value
	}
	if len(l.entries) >= l.limit {
		victim := l.order.Back()
		for e, n := victim, 0; e != nil && n < spareTries; e, n = e.Prev(), n+1 {
			if !spare(&e.Value.(*record[K, V]).value) {
				victim = e
				break
			}
		}
		l.remove(victim)
	}
	r := &record[K, V]{key: key}
	l.entries[key] = l.order.PushFront(r)
	return &r.value
}

// sweepStep is how many entries one sweep removes: more than one call adds, so
// that what is over goes, and few, so that no call takes long.
const sweepStep = 8

// sweep removes some of the oldest entries that are over.
func (l *ledger[K, V]) sweep(over func(*V) bool) {
	for range sweepStep {
		e := l.order.Back()
		if e == nil || !over(&e.Value.(*record[K, V]).value) {
			return
		}
		l.remove(e)
	}
}

func (l *ledger[K, V]) remove(e *list.Element) {
	delete(l.entries, e.Value.(*record[K, V]).key)
	l.order.Remove(e)
	if len(l.entries) == 0 {
		l.entries = map[K]*list.Element{} // a Go map keeps its size, a new one is small
	}
}

// never is for ledgers whose entries are all alike.
func never[V any](*V) bool { return false }
