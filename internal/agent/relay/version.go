package relay

// Version is what kind of gateway it is. The wire does not say (relay-facts
// §3): hello, headers and the token are the same in 0.19.0 and 0.22.2. What
// tells is the first turn. 0.22.2 reacts with eyes and types within
// milliseconds of taking an event; 0.19.0 knows no op but send (§4). So any
// other op means newer, and a send in a turn of ours, on a connection that has
// never brought another op, means older. A wrong guess is put right by the next
// op. What was learnt is remembered by gateway id; until then the newer one is
// assumed, which is the one that is in use.
type Version string

// The versions that matter.
const (
	Unknown Version = ""
	Older   Version = "0.19" // send only: no edit, typing, prompt or file ops
	Newer   Version = "0.22" // and newer
)

// newerOps are the ops that 0.19.0 does not have.
var newerOps = map[string]bool{"typing": true, "react": true, "draft": true, "edit": true, "prompt": true, "send_media": true, "delete": true}

// sawNewer notes that an op came that only a newer gateway sends.
func (g *gateway) sawNewer() {
	g.newerHere = true
	g.setVersion(Newer)
}

// sawSend notes a send in chat c, which may show that the gateway is older.
func (g *gateway) sawSend(c *convo, a *action) {
	if g.newerHere || c == nil || c.turn == nil || !c.turn.acked || c.turn.handed || a.Metadata.JobID != "" ||
		c.turn.began.Before(g.connectedAt) {
		return
	}
	if g.version == Newer && !(bool(a.Metadata.Notify) && a.replyID() == c.turn.mid) {
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
