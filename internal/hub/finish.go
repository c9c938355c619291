package hub

import (
	"runtime"
	"sync"
)

// finisher runs what follows from commits that no goroutine waited for. It runs them in order, in as many goroutines as
// can run at once: a goroutine for each would cost more than its work.
type finisher struct {
	mu      sync.Mutex
	list    []func()
	workers int
}

// do queues f and never blocks. f must not wait for other commits.
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
			f.list = nil // a burst leaves no memory behind
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
