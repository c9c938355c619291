package relay

import (
	"bytes"
	"errors"
	"log/slog"

	"hermes-mobile/internal/wsconn"
)

// Close codes. After a good handshake 4401 is final for the gateway. After the others it dials again,
// at first after a second (doc/hermes/relay.md §3).
const (
	closeGoingAway = 1001
	closeTooBig    = 1009
	closeRestart   = 1012
	closeTryLater  = 1013
	closeRevoked   = 4401
)

const (
	maxLine  = 8 << 20  // bytes of a line of the gateway
	maxQueue = 16 << 20 // bytes that wait to be written to it
)

// linkOwner hears what happens on a link. The calls come from the reader of its socket.
type linkOwner interface {
	frame(l *link, env *envelope, act *action) // act is nil unless the frame is outbound
	badLine(size int)
	pong(l *link)
	closed(l *link, err error)
}

// link is one WebSocket connection of a gateway.
type link struct {
	owner linkOwner
	log   *slog.Logger
	conn  *wsconn.Conn
	base  string // the address at which the gateway reaches us, as it dialed
	local bool   // over loopback, without a proxy between
	from  string
	near  func() (Sees, bool) // finds the process of the gateway, once; only where local

	// Of the reader.
	partial []byte
	ops     opReader
}

// Sees reports whether a gateway finds the same file as this process at a path.
type Sees interface{ Sees(path string) bool }

var (
	_ wsconn.Handler = (*link)(nil)
	_ wsconn.Ponger  = (*link)(nil)
)

// close closes the connection after everything in its queue is written.
func (l *link) close(code int, reason string) { l.conn.Close(code, reason) }

// send queues a frame and reports whether it was accepted. A gateway that has not read for so long
// that the queue is full is disconnected, and dials again.
func (l *link) send(frame []byte) bool {
	err := l.conn.Send(frame)
	if errors.Is(err, wsconn.ErrFull) {
		l.log.Warn("write queue full, closing the connection", "limit", maxQueue)
		l.conn.Abort(closeTryLater, "too slow")
	}
	return err == nil
}

// Pong implements wsconn.Ponger.
func (l *link) Pong(*wsconn.Conn) { l.owner.pong(l) }

// Message implements wsconn.Handler. A message may hold several lines, a line may be split over
// messages (doc/hermes/relay.md §3), and a whole object may lack its line end.
func (l *link) Message(_ *wsconn.Conn, _ bool, payload []byte) {
	for {
		i := bytes.IndexByte(payload, '\n')
		if i < 0 {
			break
		}
		line := payload[:i]
		payload = payload[i+1:]
		if len(l.partial)+len(line) > maxLine {
			l.tooBig()
			return
		}
		if len(l.partial) > 0 {
			line = append(l.partial, line...)
			l.partial = nil
		}
		l.line(line)
	}
	if len(l.partial)+len(payload) > maxLine {
		l.tooBig()
		return
	}
	if len(payload) == 0 {
		return
	}
	if len(l.partial) == 0 && payload[0] == '{' && payload[len(payload)-1] == '}' && wholeObject(payload) {
		l.line(payload)
		return
	}
	l.partial = append(l.partial, payload...)
}

// wholeObject reports whether b is exactly one JSON object.
func wholeObject(b []byte) bool {
	var env envelope
	return decode(b, &env) == nil
}

// line decodes one frame.
func (l *link) line(b []byte) {
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	env, act, ok := l.ops.read(b)
	if !ok {
		if err := decode(b, &env); err != nil || env.Type == "" {
			l.owner.badLine(len(b))
			return
		}
		if env.Type == "outbound" {
			act = decodeAction(&env)
		}
	}
	l.owner.frame(l, &env, act)
}

func (l *link) tooBig() {
	l.partial = nil
	l.log.Warn("line too long, closing the connection", "limit", maxLine)
	l.close(closeTooBig, "line too long")
}

// TooBig implements wsconn.Handler.
func (l *link) TooBig(*wsconn.Conn) { l.log.Warn("message too long", "limit", maxLine) }

// Drained implements wsconn.Handler.
func (l *link) Drained(*wsconn.Conn) {}

// Closed implements wsconn.Handler.
func (l *link) Closed(_ *wsconn.Conn, err error) {
	l.partial = nil
	l.owner.closed(l, err)
}
