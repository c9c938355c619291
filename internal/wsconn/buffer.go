package wsconn

import (
	"bytes"
	"sync"

	"github.com/gobwas/ws"
)

const (
	smallBuffer = 8 << 10  // most chat frames fit
	largeBuffer = 64 << 10 // the largest that is reused
)

// buffer is a pooled byte slice, with what gobwas/ws needs to read and write frame headers. It
// would allocate that for every frame.
type buffer struct {
	b   []byte // its length is its size, except in reader.msg
	src bytes.Reader
	hdr [ws.MaxHeaderSize]byte
}

var (
	smallPool = sync.Pool{New: func() any { return &buffer{b: make([]byte, smallBuffer)} }}
	largePool = sync.Pool{New: func() any { return &buffer{b: make([]byte, largeBuffer)} }}
)

// getBuffer returns a small buffer if n bytes fit in one, else a large one.
func getBuffer(n int) *buffer {
	if n <= smallBuffer {
		return smallPool.Get().(*buffer)
	}
	return largePool.Get().(*buffer)
}

// put returns the buffer to its pool. The garbage collector gets one that has grown beyond the
// large size: a few big files must not stay in memory forever.
func (b *buffer) put() {
	b.src.Reset(nil)
	switch cap(b.b) {
	case smallBuffer:
		b.b = b.b[:smallBuffer]
		smallPool.Put(b)
	case largeBuffer:
		b.b = b.b[:largeBuffer]
		largePool.Put(b)
	}
}
