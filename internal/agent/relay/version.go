package relay

// Version is the generation of a gateway. The wire does not say it (doc/hermes/relay.md §3): hello,
// headers and token are the same in all of them. The first turn shows it. From 0.20 on a gateway
// reacts with eyes and types within milliseconds of accepting an event, and 0.19 knows no op but
// send (§4). So:
//
//   - any other op means at least 0.20
//   - a draft means at least 0.20.6
//   - a send in a turn of ours means 0.19, on a connection that has never brought another op
//
// The next op corrects a wrong guess. The result is remembered by gateway id. Until then the server
// assumes a gateway with all ops, which is what is in use, but not that it drops repeated events.
type Version string

// The versions that behave differently.
const (
	Unknown Version = ""
	Older   Version = "0.19" // send only: no edit, typing, prompt or file ops
	Early   Version = "0.20" // all ops, but no draft was seen: 0.20.0, 0.20.1, or a newer one that does not stream
	Newer   Version = "0.22" // drafts, so 0.20.6 or newer: it drops an event that comes again
)

// hasAllOps reports whether the gateway has shown that it has more ops than 0.19.
func (v Version) hasAllOps() bool { return v == Early || v == Newer }

// dropsRepeats reports whether the gateway is known to drop an event that comes a second time while
// its process runs.
func (v Version) dropsRepeats() bool { return v == Newer }

// text is the version for people.
func (v Version) text() string {
	switch v {
	case Older:
		return "version 0.19 or older"
	case Early:
		return "version 0.20 or newer"
	case Newer:
		return "version 0.20.6 or newer"
	}
	return "version not known yet"
}

// newerOps are the ops that 0.19.0 does not have.
var newerOps = map[string]bool{"typing": true, "react": true, "draft": true, "edit": true, "prompt": true, "send_media": true, "delete": true}
