package doctor

import (
	"net"
	"strings"
	"time"

	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/setup"
)

// Times of a gateway (relay-facts §3).
const (
	longestPause = 5 * time.Minute           // between two tries of one that found no server at its start
	bootTime     = time.Minute               // it takes to come up on a slow machine
	stillRefused = 2*longestPause + bootTime // a refusal that is older says nothing of now
	wedgeCounts  = time.Hour
)

// agent looks at the agent that the settings chose.
func (e *examination) agent() {
	switch e.Config.Agent {
	case "demo":
		if !e.Config.AgentSet {
			e.find("demo_agent", "", "Install Hermes or name its home with HERMES_HOME, restart the server, and run: hermes-mobile setup", "The built-in demo agent answers: %s", sentence(strings.TrimPrefix(e.Config.AgentWhy, "demo, because ")))
		}
		e.away()
	case "direct":
		e.direct()
	case "relay":
		e.relay()
	}
}

// direct looks at the API that the agent direct speaks to. A Hermes of this machine has to do with it where the address leads
// here.
func (e *examination) direct() {
	var api *API
	if e.Server != nil {
		api = e.Server.API
	}
	works := e.Server != nil && e.Server.AgentOnline
	answers := works || api != nil && (api.KeyRefused || api.Another) // so it runs, wherever its home is
	if exists := e.Hermes != nil && e.Hermes.Exists; (api == nil || !api.Elsewhere) && (exists || !answers) {
		e.local("")
		if !answers {
			e.apiServer()
		}
	}
	switch {
	case api == nil:
	case works && api.KeyRefused:
		e.find("api_key_refused", "", "Set MOBILE_API_KEY to a key that may run turns and restart the server", "The API at %s lists its models, and rejects the server's key when it is asked for a reply. %s", api.URL, sentence(api.Down.Error()))
	case works && !api.Older:
	case works:
		e.find("api_older", "", "Update Hermes (hermes update), then restart its gateway", "Hermes' API is of version %s: an approval waits a minute at most, turns with images cannot be stopped and do not ask, and a server that restarts in a turn hears only its end.", api.Version)
	case api.KeyRefused && api.NoKey:
		e.find("api_key_refused", "", "Set MOBILE_API_KEY to the API_SERVER_KEY of that Hermes and restart the server; for a Hermes on this machine: hermes-mobile setup --api", "The API at %s wants a key, and the server has none.", api.URL)
	case api.KeyRefused:
		e.find("api_key_refused", "", "Set MOBILE_API_KEY to the API_SERVER_KEY of that Hermes and restart the server", "The API at %s does not take the server's key: messages are accepted and wait.", api.URL)
	case api.Another:
		e.find("api_other_gateway", "", "If the gateway was exchanged, restart the server; else correct MOBILE_API_URL", "Another gateway answers at %s than before: messages are accepted and wait. %s", api.URL, sentence(api.Down.Error()))
	case api.Down != nil:
		e.find("api_unreachable", "", "Start the gateway there (hermes gateway start) with its API server on (hermes-mobile setup --api), or correct MOBILE_API_URL and restart the server", "The API at %s cannot be used: messages are accepted and wait. %s", api.URL, sentence(api.Down.Error()))
	}
	e.away()
}

// link is a gateway that may dial in, with how it is where a server runs.
type link struct {
	id, name  string
	state     *relay.GatewayState
	elsewhere bool // its owner says that it runs on another machine
}

func (l link) online() bool { return l.state != nil && l.state.Online }

// been reports whether it was ever there, also in an earlier life of the server.
func (l link) been() bool {
	return l.state != nil && (l.state.Seen || l.state.Version != relay.Unknown)
}

func (e *examination) links() (list []link) {
	states := map[string]*relay.GatewayState{}
	if e.Server != nil && e.Server.Relay != nil {
		for i := range e.Server.Relay.Gateways {
			g := &e.Server.Relay.Gateways[i]
			states[g.ID] = g
		}
	}
	for _, g := range e.Gateways {
		l := link{id: g.ID, name: g.Name, state: states[g.ID], elsewhere: g.Local != nil && !*g.Local}
		if l.name == "" {
			l.name = g.ID
		}
		list = append(list, l)
	}
	return list
}

// relay looks at the gateways that dial in.
func (e *examination) relay() {
	links := e.links()
	online, known := 0, false
	expected := expectation{here: len(links) == 0, first: len(links) == 0} // no server has made a secret yet
	for _, l := range links {
		if l.online() {
			online++
		} else if !l.elsewhere {
			expected.here, expected.first = true, expected.first || !l.been()
		}
		known = known || l.elsewhere || l.been()
	}
	if h := e.Hermes; h != nil {
		switch {
		case h.Exists:
			e.hermes(links, expected)
		case !known && online == 0:
			e.find("hermes_missing", "", "Install Hermes or name its home with HERMES_HOME; for one on another machine: hermes-mobile setup --remote ADDRESS",
				"There is no Hermes home at %s, and no gateway has ever dialled in.", e.Config.HermesHome)
		}
	}
	if e.Server == nil || e.Server.Relay == nil {
		return
	}
	e.refusals(links, online < len(links))
	for _, l := range links {
		e.link(l)
	}
}

// refusals look at those who dial and are not let in.
func (e *examination) refusals(links []link, missing bool) {
	for _, r := range e.Server.Relay.RefusedLast {
		if e.Now.Sub(r.At) > stillRefused || letInSince(r, links) || e.changedSince(r) {
			continue
		}
		at := clock(r.At)
		switch r.Kind {
		case relay.UnknownID:
			if !e.found("gateway_unknown_id") {
				e.find("gateway_unknown_id", "", "Make both sides the same: hermes-mobile setup (or setup --remote ADDRESS for a Hermes elsewhere)", "At %s a gateway at %s was refused: the server does not know its id. It knows %s.", at, r.From, e.ids())
			}
		case relay.WrongSecret:
			if !e.found("gateway_wrong_secret") {
				e.find("gateway_wrong_secret", r.Gateway, "Make both sides the same: hermes-mobile setup (or setup --remote ADDRESS for a Hermes elsewhere); then restart the gateway", "At %s the gateway %s at %s was refused: its id is right and its secret is wrong.", at, r.Gateway, r.From)
			}
		case relay.ClockOff:
			way, seconds := "ahead of", int64(r.Skew.Seconds())
			if seconds < 0 {
				way, seconds = "behind", -seconds
			}
			e.find("clock_skew", r.Gateway, "Set the clocks by the network on both machines: timedatectl set-ntp true", "At %s the gateway %s at %s was refused: its clock is %d seconds %s this machine's, which says %s.",
				at, r.Gateway, r.From, seconds, way, r.At.UTC().Format(time.DateTime))
		case relay.NoBearer, relay.BadBearer:
			if missing {
				e.find("gateway_no_secret", "", "Run hermes-mobile setup, or put GATEWAY_RELAY_ID and GATEWAY_RELAY_SECRET into its .env; a proxy must pass Authorization on", "At %s somebody at %s dialled as a gateway and was refused: %s", at, r.From, sentence(r.Reason))
			}
		}
	}
}

// letInSince reports whether who was refused was let in after it. Of one that could not be told the machine tells.
func letInSince(r relay.Refusal, links []link) bool {
	for _, l := range links {
		switch s := l.state; {
		case s == nil:
		case l.id == r.Gateway:
			if s.Online || s.Seen && r.At.Before(s.Since) {
				return true
			}
		case r.Gateway == "" && s.Online && s.Since.After(r.At) && hostOf(s.From) == hostOf(r.From):
			return true
		}
	}
	return false
}

// changedSince reports whether the settings of the Hermes here were put right after a refusal; the gateway has yet to be
// restarted.
func (e *examination) changedSince(r relay.Refusal) bool {
	h := e.Hermes
	if h == nil || h.Files == nil || h.Files.Broken != nil || r.Kind == relay.ClockOff || !h.Files.Changed.After(r.At) {
		return false
	}
	is := relayOf(h.Files)
	g, known := e.gateway(is.id)
	return is.complete() && known && sameSecret(g.Secret.Reveal(), is.secret) && (r.Gateway == "" || r.Gateway == is.id)
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func (e *examination) ids() string {
	text := ""
	for i, g := range e.Gateways {
		if i > 0 {
			text += ", "
		}
		text += g.ID
	}
	return text
}

// link looks at one gateway.
func (e *examination) link(l link) {
	s := l.state
	if s == nil {
		return
	}
	if s.SameIDSeen {
		e.find("same_gateway_id", l.id, "Give each gateway an id and a secret of its own, under gateways in hermes-mobile.yaml", "Connections of the gateway %s replace one another over and over: two gateways use this id.", l.name)
	}
	if s.WakeErr != "" && !s.Online {
		e.find("gateway_not_woken", l.id, "Try the address of MOBILE_RELAY_WAKE_URL (or wake_url) from this machine, and correct it; or start the gateway by hand", "The gateway %s is away, messages wait for it, and it could not be woken: %s", l.name, sentence(s.WakeErr))
	}
	if !s.LastWedge.IsZero() && e.Now.Sub(s.LastWedge) < wedgeCounts {
		e.find("gateway_wedged", l.id, "If it goes on, restart the gateway and look into the logs folder of its home.", "The gateway %s took nothing at %s: its reader was stuck (%s so far).", l.name, clock(s.LastWedge), plural(int(s.Wedges), "time", "times"))
	}
	switch {
	case s.Online:
	case s.Seen:
		text := "is away since " + clock(s.Since)
		if s.Idle {
			text = "is stopping or restarting"
		}
		e.find("agent_away", l.id, "See whether its gateway runs: hermes gateway status; start it with: hermes gateway run. One that runs comes back by itself", "The agent is away (gateway %s %s): messages are accepted and wait.", l.name, text)
	default:
		e.notDialled(l)
	}
}

// notDialled says when a gateway that was not there yet may be expected.
func (e *examination) notDialled(l link) {
	waiting := e.Server.Started
	if h := e.Hermes; h != nil && h.Process != nil && !l.elsewhere && h.Files != nil {
		if h.Process.Since.After(waiting) {
			waiting = h.Process.Since
		}
		if h.Files.Changed.After(h.Process.Since.Add(time.Second)) {
			e.find("gateway_not_dialled", l.id, "Restart it: "+hermesCommand(h.Home, "gateway restart"), "The gateway %s runs since %s, and its settings were changed at %s: it goes on with the old ones.", l.name, clock(h.Process.Since), clock(h.Files.Changed))
			return
		}
	}
	if waited := e.Now.Sub(waiting); waited > longestPause+bootTime {
		e.find("gateway_not_dialled", l.id, "Restart it, and if that does not help look into logs/gateway.log of its home: hermes gateway restart",
			"The gateway %s has not dialled in for %s, longer than its longest pause of 5 minutes.", l.name, stretch(waited))
		return
	}
	e.find("gateway_not_dialled", l.id, "Wait until then, or have it dial at once: hermes gateway restart", "The gateway %s has not dialled in yet. One that found no server at its start tries again after 30 seconds, then with pauses up to 5 minutes: at the latest at about %s.",
		l.name, clock(waiting.Add(longestPause+bootTime)))
}

// away is for an agent that is no gateway.
func (e *examination) away() {
	if s := e.Server; s != nil && !s.AgentOnline {
		e.find("agent_away", "", "See: hermes-mobile status", "The agent is away (%s): messages are accepted and wait.", s.AgentDetail)
	}
}

// hermesCommand is a command of Hermes for a home.
func hermesCommand(home setup.Home, args string) string {
	if home.Profile != "" {
		return "hermes -p " + home.Profile + " " + args
	}
	return "hermes " + args
}
