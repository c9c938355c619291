package apiproxy

import (
	"sync"
	"time"

	"hermes-mobile/internal/ratelimit"
)

// pace limits what each user does.
type pace struct {
	now    func() time.Time
	limits Limits

	mu    sync.Mutex
	users map[string]*usage // of those who have logged in since the start
}

type usage struct {
	requests           *ratelimit.Bucket
	open, turns, large int
}

func newPace(now func() time.Time, l Limits) *pace {
	return &pace{now: now, limits: l, users: map[string]*usage{}}
}

// begin counts a request of a user. The caller must call end when the request is over. If the
// request exceeds a limit, end is nil and wait says how long to wait.
func (p *pace) begin(user string, turn bool) (end func(), wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[user]
	if u == nil {
		u = &usage{requests: ratelimit.NewBucket(ratelimit.Limit{Burst: p.limits.Burst, Every: p.limits.Every})}
		p.users[user] = u
	}
	if u.open >= p.limits.Open || turn && u.turns >= p.limits.Turns {
		return nil, time.Second
	}
	if wait := u.requests.Take(p.now()); wait > 0 {
		return nil, wait
	}
	count := func(n int) {
		u.open += n
		if turn {
			u.turns += n
		}
	}
	count(1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		count(-1)
	}, 0
}

// beginLarge counts a large body of a user and reports whether to read it. If so, the caller must
// call endLarge when it has arrived.
func (p *pace) beginLarge(user string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := p.users[user]
	if u == nil || u.large >= largeBodies {
		return false
	}
	u.large++
	return true
}

func (p *pace) endLarge(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[user].large--
}
