package hub

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/wsconn"
)

// Bounds of what waits to be written to one device. A connection is given durable frames only while
// less than softQueue waits, so a slow phone holds one large frame and little more. A live-only
// frame that exceeds maxQueue closes the connection with 1013.
const (
	softQueue  = 512 << 10
	maxQueue   = 24 << 20
	writeStall = 30 * time.Second
)

// conn is the sending side of one connection of a device. Its methods may be called from any
// goroutine.
type conn struct {
	ws      *wsconn.Conn
	metrics *metrics.Set
	addr    netip.Addr
	base    string        // scheme and host of links
	token   atomic.Uint64 // TokenSum of the app token it authenticated with; 0: a device's own token, or none yet
	broken  atomic.Bool   // a frame was not accepted for sending
	live    atomic.Bool   // it is the live connection of its device

	waiting atomic.Bool // drainer wants to hear when the queue has drained
	drainer drainer     // set when the connection becomes a live one

	loopback bool // it comes from this machine

	// The options that the hello asked for.
	delta, tail, tool, notices bool // tail only with delta

	// The rest belongs to the session.
	told     bool      // the device was told the present state
	approved bool      // the device knows that it is approved
	given    string    // hash of the device token in its ready frame
	expires  time.Time // of the token it authenticated with; zero: never
}

// drainer is told that the queue of a connection has drained.
type drainer interface{ drained(c *conn) }

// send queues a frame.
func (c *conn) send(f frame.Down) {
	if e, ok := f.(*frame.Error); ok {
		c.metrics.Refused.WithLabelValues(string(e.Code)).Inc()
	}
	c.write(frame.EncodeDown(f))
}

func (c *conn) write(p []byte) { c.sent(c.ws.Send(p)) }

// step sends a message, or a step of one.
func (c *conn) step(m *frame.Message) {
	c.sent(c.ws.Compose(len(m.Text)+160, m.AppendJSON))
}

func (c *conn) sent(err error) {
	if err != nil {
		c.broken.Store(true)
	}
	if errors.Is(err, wsconn.ErrFull) {
		c.metrics.Closes.WithLabelValues(strconv.Itoa(int(frame.CloseTryLater))).Inc()
		c.ws.Abort(int(frame.CloseTryLater), "too much waits to be read")
	}
}

// clear reports whether everything that the connection was given has been written to the socket.
func (c *conn) clear() bool { return c.ws.Queued() == 0 && c.ws.Lost() == 0 && !c.broken.Load() }

// full reports whether the connection has enough to write for now.
func (c *conn) full() bool { return c.ws.Queued() >= softQueue }

// await tells the drainer when the queue has drained.
func (c *conn) await() {
	c.waiting.Store(true)
	if c.ws.Queued() <= softQueue/2 {
		c.drain() // it drained before we asked
	}
}

// drain is called when the queue has drained.
func (c *conn) drain() {
	if c.waiting.CompareAndSwap(true, false) {
		c.drainer.drained(c)
	}
}

// end closes the connection after the frames that are queued.
func (c *conn) end(code frame.CloseCode, reason string) {
	c.metrics.Closes.WithLabelValues(strconv.Itoa(int(code))).Inc()
	c.ws.Close(int(code), reason)
}

// TokenSum stands for a token where only equality matters.
func TokenSum(secret string) uint64 {
	return sumOf(sha256.Sum256([]byte(secret)))
}

// sumOf is TokenSum for the SHA-256 of a token.
func sumOf(hash [sha256.Size]byte) uint64 {
	return binary.BigEndian.Uint64(hash[:8]) | 1 // never zero, which stands for none
}

// ownLabel is the label of a device's own token.
func ownLabel(device string) string { return "device:" + device }

// seconds rounds d up to whole seconds, and to one at least.
func seconds(d time.Duration) int { return max(1, int((d+time.Second-1)/time.Second)) }

// storeDown is the error for a frame that was not accepted because the store failed.
func storeDown(ref string) *frame.Error {
	return &frame.Error{Code: frame.Internal, Message: "the server can't use its store now, nothing was accepted: try again later", Ref: ref}
}
