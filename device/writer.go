package device

import (
	"time"

	"hermes-mobile/frame"
)

// job is the next thing to write.
type job struct {
	data   []byte
	urgent *urgent
	o      *Outgoing
	part   int // of a file
}

// writer writes everything that goes to the server over one connection, in its own goroutine.
type writer struct {
	link  *link
	wake  chan struct{}
	board *board
	acks  *acks
	queue *sendQueue
	calls *calls
}

// run writes until the connection ends.
func (w *writer) run() {
	t := time.NewTimer(time.Hour)
	defer t.Stop()
	for {
		j, wait := w.next(time.Now())
		if j == nil {
			t.Reset(wait)
			select {
			case <-w.wake:
			case <-t.C:
			case <-w.link.ctx.Done():
				return
			}
			continue
		}
		if j.o != nil && j.o.file != nil && !w.queue.readPart(j) {
			continue
		}
		err := w.link.send(j.data)
		if j.urgent != nil {
			if err != nil {
				j.urgent.done <- ErrLinkLost
			} else {
				j.urgent.done <- nil
			}
		}
		if err != nil {
			w.link.fail(err)
			return
		}
		if j.o != nil {
			w.queue.wrote(j, w.board.get().Capabilities.Accepted)
		}
	}
}

// next picks what to write: urgent frames, then acks, answers, messages, and a part of a file when
// there is nothing else. Without anything to write it returns how long to sleep.
func (w *writer) next(now time.Time) (*job, time.Duration) {
	if u := w.calls.next(); u != nil {
		return &job{data: u.data, urgent: u}, 0
	}
	s := w.board.get()
	wait := time.Hour
	if left, due := w.acks.wait(now); due {
		if left > 0 {
			wait = left
		} else if ack := w.acks.take(); ack != nil && s.Capabilities.Resume {
			return &job{data: frame.EncodeUp(ack)}, 0
		}
	}
	j, due := w.queue.next(w.link, &s, now)
	return j, min(wait, due)
}
