package device

import (
	"context"
	"fmt"
	"sync"

	"hermes-mobile/frame"
)

// urgent is a frame for the live connection only: the writer sends it next, or it fails with the
// connection.
type urgent struct {
	data []byte
	done chan error // 1 slot: nil once written
}

// calls holds the frames that only a live connection carries, and matches answers to requests.
type calls struct {
	ctx  context.Context // until Close
	wake chan struct{}

	mu       sync.Mutex
	online   bool
	outbound []*urgent
	waiting  map[string]chan<- frame.Down // by the id of the request
}

func newCalls(ctx context.Context, wake chan struct{}) *calls {
	return &calls{ctx: ctx, wake: wake, waiting: map[string]chan<- frame.Down{}}
}

// attach opens calls for a new connection, whose first frames are given.
func (c *calls) attach(first ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.online = true
	for _, data := range first {
		c.outbound = append(c.outbound, &urgent{data: data, done: make(chan error, 1)})
	}
	signal(c.wake)
}

// detach fails everything that waits for the connection.
func (c *calls) detach() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.online = false
	for _, u := range c.outbound {
		u.done <- ErrLinkLost
	}
	c.outbound = nil
	for id, answer := range c.waiting {
		close(answer)
		delete(c.waiting, id)
	}
}

// submit queues a frame for the live connection.
func (c *calls) submit(data []byte) (*urgent, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.online {
		return nil, ErrLinkLost
	}
	u := &urgent{data: data, done: make(chan error, 1)}
	c.outbound = append(c.outbound, u)
	signal(c.wake)
	return u, nil
}

// next returns the next frame to write, or nil.
func (c *calls) next() *urgent {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.outbound) == 0 {
		return nil
	}
	u := c.outbound[0]
	c.outbound = c.outbound[1:]
	return u
}

// ask sends a frame over the live connection and waits for the answer to its id.
func (c *calls) ask(ctx context.Context, id string, data []byte) (frame.Down, error) {
	answer := make(chan frame.Down, 1)
	c.mu.Lock()
	c.waiting[id] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waiting, id)
		c.mu.Unlock()
	}()
	if _, err := c.submit(data); err != nil {
		return nil, err
	}
	select {
	case f, ok := <-answer:
		if !ok {
			if c.ctx.Err() != nil {
				return nil, ErrClosed
			}
			return nil, ErrLinkLost
		}
		return f, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("device: wait for the answer: %w", ctx.Err())
	}
}

// answer delivers a frame to the request with this id. It reports whether one was waiting.
func (c *calls) answer(id string, f frame.Down) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.waiting[id]
	if waiting == nil {
		return false
	}
	delete(c.waiting, id)
	waiting <- f
	return true
}
