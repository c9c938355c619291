package wsconn

import (
	"io"

	"github.com/gobwas/ws"
)

// outFrame is one unfragmented frame to write. Its header is made when it is copied into a write
// buffer, so a waiting frame costs no more than this.
type outFrame struct {
	p  []byte
	op ws.OpCode
}

func (f outFrame) header() ws.Header {
	return ws.Header{Fin: true, OpCode: f.op, Length: int64(len(f.p))}
}

func (f outFrame) size() int { return ws.HeaderSize(f.header()) + len(f.p) }

// queue has the frames that wait to be written, in order. It knows how much of the first frame has
// been written, because nothing may come between the bytes of one frame.
type queue struct {
	frames []outFrame // those before head are done
	head   int
	off    int         // written bytes of frames[head]
	size   int         // remaining bytes
	one    [1]outFrame // backs frames in the usual case of a single one
}

// push adds f at the end.
func (q *queue) push(f outFrame) {
	if q.frames == nil {
		q.frames = q.one[:0]
	}
	if len(q.frames) == cap(q.frames) && q.head > len(q.frames)/2 {
		n := copy(q.frames, q.frames[q.head:])
		clear(q.frames[n:])
		q.frames, q.head = q.frames[:n], 0
	}
	q.frames = append(q.frames, f)
	q.size += f.size()
}

// border returns the index of the first frame of which nothing has been written.
func (q *queue) border() int {
	if q.off > 0 {
		return q.head + 1
	}
	return q.head
}

// control puts a ping or pong ahead of all frames that haven't begun. It replaces a waiting one of
// the same kind: only the newest ping needs an answer (RFC 6455 §5.5.3), so a flood of pings from a
// peer that reads nothing costs nothing.
func (q *queue) control(f outFrame) {
	at := q.border()
	for i := at; i < len(q.frames) && q.frames[i].op.IsControl(); i++ {
		if q.frames[i].op == f.op {
			q.size += f.size() - q.frames[i].size()
			q.frames[i] = f
			return
		}
	}
	q.push(f)
	at = q.border() // push may have moved the frames
	copy(q.frames[at+1:], q.frames[at:])
	q.frames[at] = f
}

// drop removes all frames that haven't begun.
func (q *queue) drop() {
	at := q.border()
	for _, f := range q.frames[at:] {
		q.size -= f.size()
	}
	clear(q.frames[at:])
	q.frames = q.frames[:at]
	if q.size == 0 {
		q.reset()
	}
}

// reset removes all frames, including one that has begun.
func (q *queue) reset() { *q = queue{} }

// gather copies as many of the next bytes as fit into b.b, and returns their number. It removes
// nothing: advance does.
func (q *queue) gather(b *buffer) int {
	n, off := 0, q.off
	for i := q.head; i < len(q.frames) && n < len(b.b); i++ {
		f := q.frames[i]
		h := f.header()
		_ = ws.WriteHeaderBuffer(io.Discard, h, b.hdr[:]) // fails for negative lengths only
		hs := ws.HeaderSize(h)
		if off < hs {
			c := copy(b.b[n:], b.hdr[off:hs])
			n, off = n+c, off+c
		}
		if off >= hs {
			n += copy(b.b[n:], f.p[off-hs:])
		}
		off = 0
	}
	return n
}

// advance removes n bytes and reports whether the last byte of a close frame was among them.
func (q *queue) advance(n int) (closeTaken bool) {
	q.size -= n
	for n > 0 {
		f := q.frames[q.head]
		rest := f.size() - q.off
		if n < rest {
			q.off += n
			return closeTaken
		}
		n -= rest
		closeTaken = closeTaken || f.op == ws.OpClose
		q.frames[q.head] = outFrame{}
		q.head++
		q.off = 0
	}
	if q.head == len(q.frames) {
		q.reset()
	}
	return closeTaken
}
