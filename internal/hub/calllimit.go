package hub

import (
	"context"
	"sync"
)

// maxCalls bounds the calls of one device that the agent is answering, maxAllCalls those of all devices.
const (
	maxCalls    = 8
	maxAllCalls = 256
)

// callLimit counts the calls that the agent is answering.
type callLimit struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   tally

	mu     sync.Mutex
	count  int
	of     map[string]int // by device
	closed bool
}

func (l *callLimit) init() {
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.of = map[string]int{}
}

// begin admits a call. It fails if there are too many, or the server stops.
func (l *callLimit) begin(device string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.count >= maxAllCalls || l.of[device] >= maxCalls {
		return false
	}
	l.count++
	l.of[device]++
	l.work.Add(1)
	return true
}

func (l *callLimit) end(device string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	if l.of[device]--; l.of[device] == 0 {
		delete(l.of, device)
	}
	l.work.Done()
}

// close cancels the calls, and waits for the agent until ctx ends.
func (l *callLimit) close(ctx context.Context) {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	wait(ctx, l.work.Wait)
}
