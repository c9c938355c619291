package hub

import (
	"runtime"
	"sync"
)

// finisher does what follows from commits that nobody waited for, first come first served, in as many goroutines as can run at
// once: one for each would cost more than what it does.
type finisher struct {
	mu      sync.Mutex
	list    []func()
	workers int
}

// do never blocks, and what it is given may not wait for other commits.
func (f *finisher) do(what func()) {
	f.mu.Lock()
	f.list = append(f.list, what)
	more := f.workers < runtime.GOMAXPROCS(0)
	if more {
		f.workers++
	}
	f.mu.Unlock()
	if more {
		go f.work()
	}
}

func (f *finisher) work() {
	for {
		f.mu.Lock()
		if len(f.list) == 0 {
			f.list = nil // a crowd leaves nothing behind
			f.workers--
			f.mu.Unlock()
			return
		}
		what := f.list[0]
		f.list[0] = nil
		f.list = f.list[1:]
		f.mu.Unlock()
		what()
	}
}
