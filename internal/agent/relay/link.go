package relay

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/wsconn"
)

// Close codes. After a good handshake 4401 is final for the gateway, the others
// make it dial again, at first after a second (relay-facts §3).
const (
	closeGoingAway = 1001
	closeTooBig    = 1009
	closeRestart   = 1012
	closeTryLater  = 1013
	closeRevoked   = 4401
)

const (
	helloWithin = 30 * time.Second
	maxLine     = 8 << 20
	maxOut      = 16 << 20
	// writeStall is longer than a wedge (relay-facts §7), in which the gateway
	// reads nothing for 30 s.
	writeStall = 90 * time.Second
	// maxMessageLength is announced so large that replies are not split: the
	// hub splits for the device (protocol §4).
	maxMessageLength = 500_000
)

// ops are the ops we announce (relay-facts §3).
var ops = []string{"send", "edit", "typing", "delete", "draft", "prompt", "send_media", "react"}

// link is one connection of a gateway. Its fields but partial and ops are set
// before it is served; these belong to the reader.
type link struct {
	g       *gateway
	conn    *wsconn.Conn
	base    string // where the gateway reaches us, as it dialled
	local   bool   // over loopback, no proxy between
	from    string
	near    func() (Sees, bool) // the gateway's process, looked for once; only where local
	partial []byte
	ops     opReader
}

var (
	_ wsconn.Handler = (*link)(nil)
	_ wsconn.Ponger  = (*link)(nil)
)

// upgrade makes a connection of an authorised request.
func (a *Agent) upgrade(w http.ResponseWriter, r *http.Request) {
	g := a.authorize(w, r)
	if g == nil {
		return
	}
	if !a.begins(r.Context()) {
		http.Error(w, "starting or stopping, try again", http.StatusServiceUnavailable)
		return
	}
	conn, err := wsconn.Upgrade(w, r, &wsconn.Options{
		MaxMessage: maxLine, MaxQueue: maxOut, LowWater: maxOut / 2, WriteStall: writeStall, Keeper: a.opt.Keeper,
		Batch: true, // a gateway that streams for many devices sends many ops at a time, each with its answer
	})
	if err != nil {
		g.log.Warn("relay: upgrade failed", "err", err)
		return
	}
	l := &link{g: g, conn: conn, base: access.Base(r, true), local: isLocal(r), from: a.opt.From(r)}
	l.near = sync.OnceValues(func() (Sees, bool) { return a.near(r) })
	a.mu.Lock()
	if a.ctx == nil {
		a.mu.Unlock()
		conn.CloseNow()
		return
	}
	a.links[l] = struct{}{}
	a.mu.Unlock()
	g.do(func() { g.connected(l) })
	conn.Serve(l)
}

// begins reports whether the agent runs. A gateway that dials just when the server starts waits for that: turned away, it would
// come again much later.
func (a *Agent) begins(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	select {
	case <-a.begun:
	case <-limited.Done():
	}
	return a.running() != nil
}

// connected makes l the gateway's connection. A newer one replaces an older:
// mostly the older is one that we have not noticed to be dead.
func (g *gateway) connected(l *link) {
	if g.retired {
		l.close(closeRestart, "configuration changed")
		return
	}
	now := g.a.now()
	if g.link != nil {
		g.a.count(CountReplaced, g.config().ID)
		g.log.Info("relay: a newer connection of this gateway replaces the older", "from", l.from, "older", g.link.from)
		g.replacedAt = append(g.replacedAt, now)
		if len(g.replacedAt) > 8 {
			g.replacedAt = g.replacedAt[1:]
		}
		g.dropLink(closeRestart, "replaced by a newer connection")
	}
	g.link, g.ready, g.connectedAt, g.unanswered, g.wasLocal = l, false, now, time.Time{}, l.local
	g.names, g.newerHere, g.known = nil, false, ""
	g.log.Info("relay: gateway connected", "from", l.from)
}

// close closes the connection; what is queued is still written.
func (l *link) close(code int, reason string) { l.conn.Close(code, reason) }

// send queues a frame and reports whether it was taken. A gateway that takes
// nothing for so long is cut off; it dials again.
func (l *link) send(frame []byte) bool {
	err := l.conn.Send(frame)
	if err == wsconn.ErrFull {
		l.g.log.Warn("relay: the gateway takes nothing, closing")
		l.conn.Abort(closeTryLater, "too slow")
	}
	return err == nil
}

// Pong implements wsconn.Ponger.
func (l *link) Pong(*wsconn.Conn) {
	l.g.do(func() {
		if l.g.link == l {
			l.g.ponged()
		}
	})
}

// Message implements wsconn.Handler. Several lines in a message and lines split
// over messages are taken (relay-facts §3), and a message that is a whole
// object without its line end, too.
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

func (l *link) tooBig() {
	l.partial = nil
	l.g.log.Warn("relay: a line of the gateway is too long", "limit", maxLine)
	l.close(closeTooBig, "line too long")
}

// TooBig implements wsconn.Handler.
func (l *link) TooBig(*wsconn.Conn) {
	l.g.log.Warn("relay: a message of the gateway is too long", "limit", maxLine)
}

// Drained implements wsconn.Handler.
func (l *link) Drained(*wsconn.Conn) {}

// Closed implements wsconn.Handler.
func (l *link) Closed(_ *wsconn.Conn, err error) {
	l.partial = nil
	l.g.a.mu.Lock()
	delete(l.g.a.links, l)
	l.g.a.mu.Unlock()
	l.g.do(func() {
		if l.g.link == l {
			l.g.log.Info("relay: gateway gone", "why", err, "idle", l.g.idle)
		}
		l.g.linkGone(l)
	})
}

// line takes one frame. It runs in the socket's reader and never waits.
func (l *link) line(b []byte) {
	g := l.g
	if len(bytes.TrimSpace(b)) == 0 {
		return
	}
	env, act, quick := l.ops.read(b)
	if !quick {
		if err := decode(b, &env); err != nil || env.Type == "" {
			g.a.count(CountBadLine, g.config().ID)
			g.do(func() {
				if g.badLines++; g.badLines == 1 || g.badLines%1000 == 0 {
					g.log.Warn("relay: a frame of the gateway cannot be read", "bytes", len(b), "so_far", g.badLines)
				}
			})
			return
		}
		if env.Type == "outbound" {
			act = readAction(&env)
		}
	}
	var owner *gateway
	if act != nil && act.ChatID != "" {
		owner = g.a.serves(string(act.ChatID)) // may ask the hub: not under the lock
	}
	g.do(func() {
		if g.link != l {
			return // replaced by a newer connection
		}
		switch env.Type {
		case "hello":
			g.hello(string(env.Platform))
		case "outbound":
			g.outbound(&env, act, owner)
		case "inbound_ack":
			g.ack(string(env.BufferID))
		case "going_idle":
			g.goingIdle()
		}
	})
}

// hello answers one of a gateway's names (relay-facts §3). Events may follow,
// and first of all the one that was not acknowledged (§10).
func (g *gateway) hello(name string) {
	if name == "" {
		name = "relay"
	}
	if len(g.names) < 16 {
		g.names = append(g.names, name)
	}
	g.link.send(encode(descriptorFrame{Type: "descriptor", Descriptor: descriptor{
		ContractVersion: 1, Platform: name, Label: "Mobile", MaxMessageLength: maxMessageLength,
		SupportsDraftStreaming: true, SupportsEdit: true, MarkdownDialect: "markdown", LenUnit: "chars",
		Emoji: "\U0001f4f1", SupportedOps: ops,
	}}))
	if g.ready && !g.idle {
		return
	}
	g.ready, g.idle = true, false
	g.awake()
	g.helloAt = g.a.now()
	g.askSteers()
	for c := range g.active {
		if c.turn != nil {
			c.turn.away(g.awaySince, g.helloAt)
		}
	}
	g.stopsDue()
	g.pump()
	g.changed()
}

// goingIdle: the gateway's process ends (relay-facts §10). Its prompts die with
// it. Turns of a newer gateway have ended before; an older one goes on with them
// by itself after its restart.
func (g *gateway) goingIdle() {
	g.link.send(encode(struct {
		Type string `json:"type"`
	}{"going_idle_ack"}))
	if g.idle {
		return
	}
	g.idle = true
	g.note(slog.LevelInfo, "relay: the gateway stops or restarts")
	if g.nonce != "" {
		g.dead, g.nonce = g.nonce, ""
	}
	g.expireCards("")
	for _, c := range g.convos { // it may have ended the turn by itself just before, as one that is done
		c.cut = c.turn != nil || g.a.now().Sub(c.ended) < cutBefore
	}
	for c := range g.active {
		c.question, c.plainLast = false, time.Time{}
		if t := c.turn; t != nil && t.acked && g.version != Older {
			g.endTurn(c, t.endAt.IsZero() && t.notified.IsZero())
		}
	}
	g.changed()
}

// wholeObject reports whether b is one JSON object and nothing else.
func wholeObject(b []byte) bool {
	var env envelope
	return decode(b, &env) == nil
}

// isLocal reports whether the gateway runs on this machine as far as one can see.
func isLocal(r *http.Request) bool {
	for h := range r.Header {
		if h == "Forwarded" || h == "Via" || h == "X-Real-Ip" || strings.HasPrefix(h, "X-Forwarded-") {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(strings.Split(host, "%")[0])
	return ip != nil && ip.IsLoopback()
}

// near finds the gateway that made a request.
func (a *Agent) near(r *http.Request) (Sees, bool) {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return nil, false
	}
	local, err := netip.ParseAddrPort(at.String())
	remote, err2 := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || err2 != nil {
		return nil, false
	}
	return a.opt.Near(local, remote)
}
