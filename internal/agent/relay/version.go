package relay

// Version is what generation of gateway it is. The wire does not say
// (relay-facts §3): hello, headers and the token are the same in all of them.
// What tells is the first turn. 0.20 and newer react with eyes and type within
// milliseconds of taking an event; 0.19 knows no op but send (§4). So any other
// op means 0.20 at least, and a send in a turn of ours, on a connection that has
// never brought another op, means 0.19. A draft means 0.20.6 at least. A wrong
// guess is put right by the next op. What was learnt is remembered by gateway
// id; until then one with all ops is assumed, which is what is in use, but not
// that it knows a repeated event.
type Version string

// The versions that matter.
const (
	Unknown Version = ""
	Older   Version = "0.19" // send only: no edit, typing, prompt or file ops
	Early   Version = "0.20" // all of these, but no draft was seen: 0.20.0, 0.20.1, or a newer one that does not stream
	Newer   Version = "0.22" // drafts, so 0.20.6 and newer: it drops an event that comes again
)

// newerOps are the ops that 0.19.0 does not have.
var newerOps = map[string]bool{"typing": true, "react": true, "draft": true, "edit": true, "prompt": true, "send_media": true, "delete": true}

// saw notes an op that only gateways from 0.20 on send, or only those from 0.20.6 on.
func (g *gateway) saw(a *action) {
	switch {
	case a.Op == "draft":
		g.newerHere = true
		g.setVersion(Newer)
	case newerOps[string(a.Op)]:
		g.newerHere = true
		if g.version != Newer || a.Op == "prompt" && a.PromptID != "" && nonceOf(string(a.PromptID)) == "" { // 0.20.0 has no nonce
			g.setVersion(Early)
		}
	}
}

// all reports whether the gateway has shown that it has more ops than 0.19.
func (v Version) all() bool { return v == Early || v == Newer }

// dropsRepeats reports whether the gateway is known to drop an event that comes a second time in the life of its process.
func (v Version) dropsRepeats() bool { return v == Newer }

// sawSend notes a send in chat c, which may show that the gateway is older.
func (g *gateway) sawSend(c *convo, a *action) {
	if g.newerHere || c == nil || c.turn == nil || !c.turn.acked || c.turn.handed || a.Metadata.JobID != "" ||
		c.turn.began.Before(g.connectedAt) {
		return
	}
	if g.version.all() && !(bool(a.Metadata.Notify) && a.replyID() == c.turn.mid) {
		return // a notice of a gateway that starts; it takes a whole turn to believe in a downgrade
	}
	g.setVersion(Older)
}

func (g *gateway) setVersion(v Version) {
	if g.version == v {
		return
	}
	g.version = v
	g.log.Info("relay: gateway version learnt", "version", v)
	id := g.config().ID
	g.later(func() {
		if g.a.opt.Remember != nil {
			g.a.opt.Remember(id, v)
		}
	})
	g.changed()
}
