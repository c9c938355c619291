// Package wsconn is the server's side of one WebSocket (RFC 6455), made for
// many connections that are idle most of the time.
//
// An idle connection is one goroutine with the smallest stack, parked on the
// socket, and nothing else: no buffer, no timer, no writer. Buffers come from pools while there is something
// to read or to write, and a writing goroutine exists only while a peer takes
// less than it is sent. Waiting bytes are bounded, a peer that takes nothing is
// dropped, and Send never waits.
//
// Typical use, in an http.Handler:
//
//	c, err := wsconn.Upgrade(w, r, opt)
//	if err != nil {
//		return // already answered
//	}
//	c.Serve(handler) // returns at once
//
// The package does not log and knows nothing of what the messages mean.
package wsconn

import (
	"errors"
	"fmt"
	"time"
)

// Options are the limits of a connection. The zero value means no limit on
// anything; a server that faces strangers sets all of them.
type Options struct {
	// MaxMessage is the largest message a peer may send, in bytes, the
	// payloads of its fragments added up. A larger one is announced with
	// Handler.TooBig and ends the connection with 1009. Zero: no limit.
	MaxMessage int64

	// MaxQueue bounds the bytes that wait to be written, frame headers
	// included. Send refuses with ErrFull what would pass it, except a message
	// that finds the queue empty: so a connection holds MaxQueue bytes or one
	// message, whichever is more. Zero: no limit.
	MaxQueue int

	// LowWater is the length of the queue, in bytes, at which Handler.Drained
	// is called when the queue shrinks to it or below after having been above.
	LowWater int

	// WriteStall is how long a peer may take nothing at all of what waits for
	// it. Then the connection is dropped with ErrSlow. A peer that is slow but
	// takes something is kept. Zero: no limit.
	WriteStall time.Duration

	// Batch holds back what is sent until all that was read is handled: one
	// write answers many messages. For handlers that never wait.
	Batch bool

	// Room bounds what the large messages of all connections take while they
	// come. A peer for whose message there is none waits some seconds, then the
	// connection ends with 1013. Nil: no limit.
	Room *Room

	// Keeper pings the connection and drops it when it is silent. One Keeper
	// serves all connections of a server. Nil: no pings, no silence limit.
	Keeper *Keeper
}

// Handler is what a connection reports to. Message, TooBig and Closed come one
// at a time and in order; while one of them runs nothing is read from the peer,
// so a handler that takes its time slows its own peer down and nobody else.
type Handler interface {
	// Message is called for every whole message. The payload belongs to the
	// connection: it is valid until Message returns and may be changed until
	// then. Text is not checked for UTF-8 (RFC 6455 §8.1 would close with 1007;
	// the device protocol keeps such connections open and answers with an error).
	Message(c *Conn, text bool, payload []byte)

	// TooBig is called once when a message passes Options.MaxMessage, before
	// the close with 1009, so that the callee can Send a last word. No Message
	// follows.
	TooBig(c *Conn)

	// Drained says that the queue has fallen to Options.LowWater. It comes from
	// a goroutine of its own, possibly while Message runs, with no lock of the
	// Conn held. It does not come from a connection that is closing.
	Drained(c *Conn)

	// Closed is called exactly once, as the last call, when the socket is gone.
	// err is never nil: a CloseError when either side closed with a close
	// frame, ErrSlow, ErrSilent, ErrClosed after CloseNow, or the error of the
	// socket (io.EOF when the peer left without a word).
	Closed(c *Conn, err error)
}

// Ponger is a Handler that wants to hear of pongs.
type Ponger interface {
	// Pong is called for each, in turn with Handler's other calls. It may have been sent for any ping before, the Keeper's
	// too (RFC 6455 §5.5.3).
	Pong(c *Conn)
}

var (
	// ErrFull is returned by Send when the message would pass Options.MaxQueue.
	// The message was not queued; the connection is as it was.
	ErrFull = errors.New("wsconn: write queue is full")

	// ErrClosed is returned by Send when the connection is closing or closed,
	// and given to Handler.Closed after CloseNow.
	ErrClosed = errors.New("wsconn: connection is closed")

	// ErrSlow is given to Handler.Closed when the peer took nothing for
	// Options.WriteStall.
	ErrSlow = errors.New("wsconn: peer takes nothing of what is sent")

	// ErrSilent is given to Handler.Closed when nothing came from the peer for
	// as long as the Keeper allows.
	ErrSilent = errors.New("wsconn: peer is silent")
)

// Close codes this package sends by itself (RFC 6455 §7.4.1).
const (
	CodeNormal        = 1000
	CodeProtocolError = 1002
	CodeNoStatus      = 1005 // never on the wire: the close frame had no code
	CodeTooBig        = 1009
	CodeTryLater      = 1013
)

// CloseError tells that the connection ended with a close frame (RFC 6455
// §5.5.1). The side that closed first decides Code and Reason.
type CloseError struct {
	Code   int    // CodeNoStatus when the frame carried none
	Reason string // at most 123 bytes
	Local  bool   // we closed, by Close, Abort or a rule of the protocol
}

// Error implements error.
func (e CloseError) Error() string {
	who := "peer"
	if e.Local {
		who = "we"
	}
	return fmt.Sprintf("wsconn: %s closed with %d %q", who, e.Code, e.Reason)
}
