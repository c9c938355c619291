package device

import (
	"sync"
	"time"
)

// indicator holds the typing indicator and the avatar. Both turn off when no sign of work follows
// for the timeout.
type indicator struct {
	in      *inbox
	timeout time.Duration

	mu    sync.Mutex
	now   Activity
	timer *time.Timer
}

func newIndicator(in *inbox, timeout time.Duration) *indicator {
	return &indicator{in: in, timeout: timeout, now: Activity{Avatar: "idle"}}
}

func (i *indicator) get() Activity {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.now
}

func (i *indicator) typing(on bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.setLocked(Activity{Typing: on, Avatar: i.now.Avatar})
}

func (i *indicator) avatar(state string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.setLocked(Activity{Typing: i.now.Typing, Avatar: state})
}

// reset turns both off, for example because the connection dropped.
func (i *indicator) reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.setLocked(Activity{Avatar: "idle"})
}

// sign records a sign of work: a piece of a reply, a tool, a card.
func (i *indicator) sign() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.extendLocked()
}

func (i *indicator) stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.timer != nil {
		i.timer.Stop()
	}
}

func (i *indicator) setLocked(a Activity) {
	if a != i.now {
		i.now = a
		i.in.push(queued{ev: a, key: "activity"})
	}
	i.extendLocked()
}

func (i *indicator) extendLocked() {
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	if !i.now.Typing && (i.now.Avatar == "idle" || i.now.Avatar == "") {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(i.timeout, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.timer == t { // otherwise a sign at the same moment started another timer
			i.setLocked(Activity{Avatar: "idle"})
		}
	})
	i.timer = t
}
