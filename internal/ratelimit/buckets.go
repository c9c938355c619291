package ratelimit

import (
	"sync"
	"time"
)

// Buckets holds one bucket per key. It is safe for concurrent use.
//
// A full bucket takes no memory. When there are too many keys, a key with a full bucket goes first.
type Buckets[K comparable] struct {
	limit Limit
	now   func() time.Time

	mu    sync.Mutex
	known *Table[K, *Bucket]
}

// NewBuckets returns buckets for at most keys keys. The clock is time.Now, or a test's.
func NewBuckets[K comparable](limit Limit, keys int, now func() time.Time) *Buckets[K] {
	return &Buckets[K]{limit: limit, now: now, known: NewTable[K, *Bucket](keys)}
}

// Take counts an event of a key if it is allowed. Otherwise it returns how long to wait.
func (b *Buckets[K]) Take(key K) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	return b.bucket(key, now).Take(now)
}

// Wait returns how long it takes until one more event of a key is allowed, 0 if it is allowed now.
func (b *Buckets[K]) Wait(key K) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.known.Get(key); known != nil {
		return (*known).Wait(b.now())
	}
	return 0
}

// Hold reserves an event of a key whose outcome is still open, such as a password that is being
// checked. The caller must call settle once; used says whether the event counts. If no event is
// allowed, settle is nil and wait says how long to wait.
func (b *Buckets[K]) Hold(key K) (settle func(used bool), wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	bucket := b.bucket(key, now)
	if wait = bucket.hold(now); wait > 0 {
		return nil, wait
	}
	return func(used bool) {
		b.mu.Lock()
		defer b.mu.Unlock()
		now := b.now()
		if bucket.settle(now, used); !bucket.full(now) {
			return
		}
		if known := b.known.Get(key); known != nil && *known == bucket {
			b.known.Remove(key)
		}
	}, 0
}

// Len returns how many keys are remembered.
func (b *Buckets[K]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known.Len()
}

// bucket returns the bucket of a key, and creates it if necessary. Callers hold the lock.
func (b *Buckets[K]) bucket(key K, now time.Time) *Bucket {
	full := func(k **Bucket) bool { return (*k).full(now) }
	b.known.Sweep(full)
	known := b.known.Touch(key, func(k **Bucket) bool { return !full(k) })
	if *known == nil {
		*known = NewBucket(b.limit)
	}
	return *known
}
