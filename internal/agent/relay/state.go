package relay

import (
	"fmt"
	"slices"
	"time"

	"hermes-mobile/internal/agent"
)

// Refusal is a dial or request that was turned away.
type Refusal struct {
	At      time.Time
	Gateway string // where it could be told and is configured
	Kind    RefusalKind
	From    string
	Reason  string
	Skew    time.Duration // the gateway's clock minus ours, where it could be told
}

// RefusalKind is what is wrong with a bearer.
type RefusalKind string

// The kinds of refusals.
const (
	NoBearer    RefusalKind = "no bearer" // the gateway has no id and secret
	BadBearer   RefusalKind = "bad bearer"
	UnknownID   RefusalKind = "unknown id"
	WrongSecret RefusalKind = "wrong secret"
	ClockOff    RefusalKind = "clock off" // the token is too old or from the future
)

// State is a picture for status and doctor.
type State struct {
	Gateways    []GatewayState
	Refusals    int64
	LastRefusal *Refusal
	// RefusedLast has the last refusal of each gateway, and of those that could not be told, the newest first.
	RefusedLast []Refusal
}

// GatewayState is a picture of one gateway.
type GatewayState struct {
	ID, Name   string
	Online     bool
	Idle       bool      // it said that it stops
	Seen       bool      // it was connected since the start
	Since      time.Time // connected, or away
	From       string
	Names      []string // that it said in hello
	KnownName  string   // the one that it proved to know (relay-facts §9)
	Version    Version
	Local      bool // it is on this machine, or was when it was there last
	Files      FilesBy
	MediaBase  string // where its files are, with ByAddress; as it dialled, unless its owner set another
	Turns      int
	Waiting    int // events without a receipt
	Wedged     bool
	Wedges     int64
	LastWedge  time.Time
	BadLines   int64
	WakeErr    string // why it could not be woken, where its owner has set an address for that
	SameIDSeen bool   // connections of this id replace one another: two gateways with one id?
}

// State returns a picture of all gateways.
func (a *Agent) State() State {
	a.mu.Lock()
	s := State{Refusals: a.refusals}
	if a.lastRefusal != nil {
		r := *a.lastRefusal
		s.LastRefusal = &r
	}
	for _, r := range a.refusedLast {
		s.RefusedLast = append(s.RefusedLast, r)
	}
	a.mu.Unlock()
	slices.SortFunc(s.RefusedLast, func(x, y Refusal) int { return y.At.Compare(x.At) })
	for _, g := range a.routes.Load().list {
		s.Gateways = append(s.Gateways, g.state())
	}
	return s
}

// GatewayOf returns a picture of the gateway that serves a device, nil where none does.
func (a *Agent) GatewayOf(device string) *GatewayState {
	g := a.serves(device)
	if g == nil {
		return nil
	}
	s := g.state()
	return &s
}

func (g *gateway) state() GatewayState {
	cfg := g.config()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := GatewayState{
		ID: cfg.ID, Name: cfg.Name, Online: g.online(), Idle: g.idle, Seen: !g.connectedAt.IsZero(), Since: g.awaySince,
		Names: append([]string(nil), g.names...), KnownName: g.known, Version: g.version, Local: g.local() || g.link == nil && g.wasLocal,
		Waiting: len(g.queue), Wedged: g.wedged, Wedges: g.wedges, LastWedge: g.lastWedge, BadLines: g.badLines,
		Files: g.filesBy(), MediaBase: g.mediaBase(), WakeErr: g.wakeErr, SameIDSeen: g.sameID(),
	}
	if g.link != nil {
		s.Since, s.From = g.connectedAt, g.link.from
	}
	for c := range g.active {
		if c.turn != nil {
			s.Turns++
		}
	}
	return s
}

// sameID reports whether living connections replaced one another so often that
// two gateways must share an id.
func (g *gateway) sameID() bool {
	const often = 3
	n := 0
	for _, t := range g.replacedAt {
		if g.a.now().Sub(t) < 2*time.Minute {
			n++
		}
	}
	return n >= often
}

// status is agent.Agent.Status. Until the version is known the newer one is
// assumed.
func (g *gateway) status() agent.Status {
	cfg := g.config()
	g.mu.Lock()
	defer g.mu.Unlock()
	newer := g.version != Older
	s := agent.Status{
		Online: g.online(), Edit: newer, Typing: newer, Prompt: newer, Stop: true, Steer: g.steers,
		FilesIn: newer || g.local(), Files: newer,
	}
	version := "version not known yet"
	switch g.version {
	case Older:
		version = "version 0.19 or older"
	case Early:
		version = "version 0.20 or newer"
	case Newer:
		version = "version 0.20.6 or newer"
	}
	switch {
	case g.wedged:
		s.Detail = fmt.Sprintf("gateway %s, %s, takes nothing since %s: its reader is stuck", cfg.Name, version, g.wedgedAt.UTC().Format(time.TimeOnly))
	case s.Online:
		s.Detail = fmt.Sprintf("gateway %s, %s", cfg.Name, version)
	case g.idle:
		s.Detail = fmt.Sprintf("gateway %s is stopping or restarting", cfg.Name)
	case g.link != nil:
		s.Detail = fmt.Sprintf("gateway %s is connecting", cfg.Name)
	case g.connectedAt.IsZero():
		s.Detail = fmt.Sprintf("gateway %s has not connected yet", cfg.Name)
	default:
		s.Detail = fmt.Sprintf("gateway %s is away since %s", cfg.Name, g.awaySince.UTC().Format(time.DateTime))
	}
	if s.Detail == g.detail { // each session keeps what it was told: all of them one text
		s.Detail = g.detail
	}
	g.detail = s.Detail
	return s
}
