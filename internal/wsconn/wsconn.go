// Package wsconn is the server's side of one WebSocket (RFC 6455), made for many connections that
// are idle most of the time.
//
// An idle connection is one goroutine with the smallest stack, parked on the socket, and nothing
// else: no buffer, no timer, no writer. Buffers come from pools while there is something to read or
// write. A writing goroutine exists only while a peer reads slower than the server sends. Waiting
// bytes are bounded, a peer that reads nothing is dropped, and Send never waits.
//
// Typical use, in an http.Handler:
//
//	c, err := wsconn.Upgrade(w, r, opt)
//	if err != nil {
//		return // already answered
//	}
//	c.Serve(handler) // returns at once
//
// The package logs nothing and doesn't know the meaning of the messages.
package wsconn

import (
	"errors"
	"fmt"
	"time"
)

// Options are the limits of a connection. The zero value has no limits. A server that faces
// strangers sets all of them.
type Options struct {
	// MaxMessage is the largest message from a peer in bytes, the sum of its fragments' payloads.
	// For a larger one the connection calls Handler.TooBig and closes with 1009. Zero: no limit.
	MaxMessage int64

	// MaxQueue bounds the bytes that wait to be written, including frame headers. Send returns
	// ErrFull for a message that exceeds it, unless the queue is empty: a connection holds MaxQueue
	// bytes or one message, whichever is more. Zero: no limit.
	MaxQueue int

	// LowWater is the length of the queue in bytes at which Handler.Drained is called when the
	// queue shrinks to it or below.
	LowWater int

	// WriteStall is how long a peer may read nothing of the waiting data. Then the connection is
	// dropped with ErrSlow. A peer that reads slowly is kept. Zero: no limit.
	WriteStall time.Duration

	// Batch delays writes until all received messages are handled: one write answers many messages.
	// Use it for handlers that never wait.
	Batch bool

	// Room bounds the memory of the incoming large messages of all connections. If it is exhausted,
	// the peer waits some seconds, then the connection closes with 1013. Nil: no limit.
	Room *Room

	// Keeper is the heartbeat: it pings the connection and drops it when it is silent. One Keeper
	// serves all connections of a server. Nil: no pings, no silence limit.
	Keeper *Keeper
}

// Handler receives the events of a connection. Message, TooBig and Closed are called one at a time
// and in order. While one of them runs, nothing is read from the peer, so a slow handler slows down
// its own peer and nobody else.
type Handler interface {
	// Message is called for every complete message. The payload belongs to the connection: it is
	// valid until Message returns, and the handler may change it until then. Text isn't checked for
	// UTF-8 (RFC 6455 §8.1 would close with 1007; the device protocol keeps such connections open
	// and answers with an error).
	Message(c *Conn, text bool, payload []byte)

	// TooBig is called once when a message exceeds Options.MaxMessage, before the close with 1009,
	// so the handler can Send a last message. No Message follows.
	TooBig(c *Conn)

	// Drained reports that the queue has fallen to Options.LowWater. It is called from its own
	// goroutine, possibly while Message runs, without a lock of the Conn. It isn't called for a
	// closing connection.
	Drained(c *Conn)

	// Closed is called exactly once, as the last call, when the socket is gone. err is never nil: a
	// CloseError if either side sent a close frame, ErrSlow, ErrSilent, ErrClosed after CloseNow,
	// or the error of the socket (io.EOF if the peer left without a close frame).
	Closed(c *Conn, err error)
}

// Ponger is a Handler that receives pongs.
type Ponger interface {
	// Pong is called for each pong, in order with Handler's other calls. The pong may answer any
	// earlier ping, also one of the Keeper (RFC 6455 §5.5.3).
	Pong(c *Conn)
}

var (
	// ErrFull is returned by Send if the message would exceed Options.MaxQueue. The message was not
	// queued, and the connection is unchanged.
	ErrFull = errors.New("wsconn: write queue is full")

	// ErrClosed is returned by Send if the connection is closing or closed, and passed to
	// Handler.Closed after CloseNow.
	ErrClosed = errors.New("wsconn: connection is closed")

	// ErrSlow is passed to Handler.Closed if the peer read nothing for Options.WriteStall.
	ErrSlow = errors.New("wsconn: peer reads nothing")

	// ErrSilent is passed to Handler.Closed if nothing arrived from the peer for as long as the
	// Keeper allows.
	ErrSilent = errors.New("wsconn: peer is silent")
)

// Close codes that this package sends (RFC 6455 §7.4.1).
const (
	CodeNormal        = 1000
	CodeProtocolError = 1002
	CodeNoStatus      = 1005 // never on the wire: the close frame had no code
	CodeTooBig        = 1009
	CodeTryLater      = 1013
)

// CloseError reports that the connection ended with a close frame (RFC 6455 §5.5.1). The side that
// closed first decides Code and Reason.
type CloseError struct {
	Code   int    // CodeNoStatus if the frame had none
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
