package relay

import (
	"fmt"
	"time"

	"hermes-mobile/internal/agent"
)

// State describes all gateways, for status and doctor.
type State struct {
	Gateways    []GatewayState
	Refusals    int64
	LastRefusal *Refusal
	// RefusedLast has the last refusal of each gateway, and of those that could not be identified, the
	// newest first.
	RefusedLast []Refusal
}

// GatewayState describes one gateway.
type GatewayState struct {
	ID, Name   string
	Online     bool
	Idle       bool      // it said that it stops
	Seen       bool      // it was connected since the server started
	Since      time.Time // when it connected, or went offline
	From       string
	Names      []string // that it said in hello
	KnownName  string   // the one that it proved to know (doc/hermes/relay.md §9)
	Version    Version
	Local      bool // it is on this machine, or was when it was last connected
	Files      FilesBy
	MediaBase  string // where it fetches files, with ByAddress: the host it dialed unless its owner set another
	Turns      int
	Waiting    int // events without an ack
	Wedged     bool
	Wedges     int64
	LastWedge  time.Time
	BadLines   int64
	WakeErr    string // why it could not be woken, where its owner has set an address for that
	SameIDSeen bool   // connections of this id replace one another: two gateways may use one id
}

// state describes the gateway.
func (g *gateway) state() GatewayState {
	cfg := g.config()
	g.seq.Lock()
	defer g.seq.Unlock()
	w, t, q := &g.wire, &g.traits, &g.queue
	s := GatewayState{
		ID: cfg.ID, Name: cfg.Name, Online: w.online(), Idle: w.idle, Seen: !w.connectedAt.IsZero(), Since: w.offlineSince,
		Names: append([]string(nil), t.names...), KnownName: t.known, Version: t.version,
		Local: g.files.local() || w.link == nil && w.wasLocal, Files: g.files.by(), MediaBase: g.files.base(),
		Turns: g.conversations.turns(), Waiting: len(q.list), Wedged: q.stalled, Wedges: q.stalls, LastWedge: q.lastStall,
		BadLines: w.badLines, WakeErr: g.waker.err, SameIDSeen: w.sharesID(),
	}
	if w.link != nil {
		s.Since, s.From = w.connectedAt, w.link.from
	}
	return s
}

// status returns what the gateway can do for a device. Until the version is known the newer one is
// assumed.
func (g *gateway) status() agent.Status {
	cfg := g.config()
	g.seq.Lock()
	defer g.seq.Unlock()
	w, version := &g.wire, g.traits.version
	newer := version != Older
	s := agent.Status{
		Online: w.online(), Edit: newer, Typing: newer, Prompt: newer, Stop: true, Steer: g.traits.steers,
		FilesIn: newer || g.files.local(), Files: newer,
	}
	switch {
	case g.queue.stalled:
		s.Detail = fmt.Sprintf("gateway %s, %s, has stalled at %s: it accepts no messages for now", cfg.Name, version.text(), g.queue.stalledAt.UTC().Format(time.TimeOnly))
	case s.Online:
		s.Detail = fmt.Sprintf("gateway %s, %s", cfg.Name, version.text())
	case w.idle:
		s.Detail = fmt.Sprintf("gateway %s is stopping or restarting", cfg.Name)
	case w.link != nil:
		s.Detail = fmt.Sprintf("gateway %s is connecting", cfg.Name)
	case w.connectedAt.IsZero():
		s.Detail = fmt.Sprintf("gateway %s has not connected yet", cfg.Name)
	default:
		s.Detail = fmt.Sprintf("gateway %s is offline since %s", cfg.Name, w.offlineSince.UTC().Format(time.DateTime))
	}
	if s.Detail == g.detail { // each session keeps its copy: let all of them share one text
		s.Detail = g.detail
	}
	g.detail = s.Detail
	return s
}
