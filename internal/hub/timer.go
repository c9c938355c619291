package hub

import "time"

// timer runs a function in its session after a while. The zero value is not running. It belongs to the session.
type timer struct{ alarm *alarm }

// alarm is one start of a timer, and the event that it posts.
type alarm struct {
	timer *timer
	queue queue
	f     func(*batch)
	fast  bool
	clock *time.Timer
}

// start runs f after d, unless the timer is running.
func (t *timer) start(q queue, d time.Duration, f func(*batch)) { t.arm(q, d, f, false) }

// startQuick is start for a function that needs no waiting.
func (t *timer) startQuick(q queue, d time.Duration, f func(*batch)) { t.arm(q, d, f, true) }

func (t *timer) arm(q queue, d time.Duration, f func(*batch), fast bool) {
	if t.alarm == nil {
		a := &alarm{timer: t, queue: q, f: f, fast: fast}
		t.alarm = a
		a.clock = time.AfterFunc(max(d, 0), a.ring)
	}
}

// stop stops the timer. Its function does not run any more, even if the time was over already.
func (t *timer) stop() {
	if t.alarm != nil {
		t.alarm.clock.Stop()
		t.alarm = nil
	}
}

func (t *timer) running() bool { return t.alarm != nil }

func (a *alarm) ring() { a.queue.post(a) }

func (a *alarm) quick() bool { return a.fast }

func (a *alarm) apply(b *batch) {
	if a.timer.alarm == a {
		a.timer.alarm = nil
		a.f(b)
	}
}
