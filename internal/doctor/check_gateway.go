package doctor

import (
	"net"
	"strings"
	"time"

	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/setup"
)

// Times of a gateway (doc/hermes/relay.md §3).
const (
	longestPause  = 5 * time.Minute           // between two retries of a gateway that found no server at its start
	bootTime      = time.Minute               // a slow machine needs to start a gateway
	stillRejected = 2*longestPause + bootTime // an older rejection says nothing about the present
	stallCounts   = time.Hour
)

// agent checks the agent that the settings select.
func (k *checker) agent() {
	switch k.Config.Agent {
	case "demo":
		if !k.Config.AgentSet {
			k.find("demo_agent", "", "Install Hermes or set HERMES_HOME, restart the server, and run: hermes-mobile setup", "The built-in demo agent answers: %s", sentence(strings.TrimPrefix(k.Config.AgentWhy, "demo, because ")))
		}
		k.away()
	case "direct":
		k.direct()
	case "relay":
		k.relay()
	}
}

// direct checks the API that the agent direct uses. The Hermes on this machine matters if the address is on
// this machine.
func (k *checker) direct() {
	var api *API
	if k.Server != nil {
		api = k.Server.API
	}
	works := k.Server != nil && k.Server.AgentOnline
	answers := works || api != nil && (api.KeyRefused || api.Another) // it is running, wherever its home is
	if exists := k.Hermes != nil && k.Hermes.Exists; (api == nil || !api.Elsewhere) && (exists || !answers) {
		k.local("")
		if !answers {
			k.apiServer()
		}
	}
	switch {
	case api == nil:
	case works && api.KeyRefused:
		k.find("api_key_refused", "", "Set MOBILE_API_KEY to a key that may run turns, then restart the server", "The API at %s accepts the server's key for listing models, but not for a reply. %s", api.URL, sentence(api.Down.Error()))
	case works && !api.Older:
	case works:
		k.find("api_older", "", "Update Hermes (hermes update), then restart its gateway", "Hermes' API has version %s: an approval expires after a minute, turns with images can't be stopped and can't ask, and a server that restarts during a turn gets only its end.", api.Version)
	case api.KeyRefused && api.NoKey:
		k.find("api_key_refused", "", "Set MOBILE_API_KEY to the API_SERVER_KEY of that Hermes, then restart the server. If Hermes is on this machine, run: hermes-mobile setup --api", "The API at %s requires a key, and the server has none.", api.URL)
	case api.KeyRefused:
		k.find("api_key_refused", "", "Set MOBILE_API_KEY to the API_SERVER_KEY of that Hermes, then restart the server", "The API at %s rejects the server's key. The server queues messages.", api.URL)
	case api.Another:
		k.find("api_other_gateway", "", "If you replaced the gateway, restart the server. Otherwise correct MOBILE_API_URL", "A different gateway answers at %s than before. The server queues messages. %s", api.URL, sentence(api.Down.Error()))
	case api.Down != nil:
		k.find("api_unreachable", "", "Start the gateway (hermes gateway start) with its API server (hermes-mobile setup --api), or correct MOBILE_API_URL and restart the server", "The API at %s does not work. The server queues messages. %s", api.URL, sentence(api.Down.Error()))
	}
	k.away()
}

// link is an accepted gateway, with its state if the server is running.
type link struct {
	id, name  string
	state     *relay.GatewayState
	elsewhere bool // the settings say that it runs on another machine
}

func (l link) online() bool { return l.state != nil && l.state.Online }

// been reports whether the gateway was ever connected, also to an earlier run of the server.
func (l link) been() bool {
	return l.state != nil && (l.state.Seen || l.state.Version != relay.Unknown)
}

func (k *checker) links() (list []link) {
	states := map[string]*relay.GatewayState{}
	if k.Server != nil && k.Server.Relay != nil {
		for i := range k.Server.Relay.Gateways {
			g := &k.Server.Relay.Gateways[i]
			states[g.ID] = g
		}
	}
	for _, g := range k.Gateways {
		l := link{id: g.ID, name: g.Name, state: states[g.ID], elsewhere: g.Local != nil && !*g.Local}
		if l.name == "" {
			l.name = g.ID
		}
		list = append(list, l)
	}
	return list
}

// relay checks the gateways that dial in.
func (k *checker) relay() {
	links := k.links()
	online, known := 0, false
	expected := expectation{here: len(links) == 0, first: len(links) == 0} // no server has created a secret yet
	for _, l := range links {
		if l.online() {
			online++
		} else if !l.elsewhere {
			expected.here, expected.first = true, expected.first || !l.been()
		}
		known = known || l.elsewhere || l.been()
	}
	if h := k.Hermes; h != nil {
		switch {
		case h.Exists:
			k.hermes(links, expected)
		case !known && online == 0:
			k.find("hermes_missing", "", "Install Hermes or set HERMES_HOME. If Hermes is on another machine, run: hermes-mobile setup --remote ADDRESS",
				"There is no Hermes home at %s, and no gateway has ever connected.", k.Config.HermesHome)
		}
	}
	if k.Server == nil || k.Server.Relay == nil {
		return
	}
	k.rejections(links, online < len(links))
	for _, l := range links {
		k.link(l)
	}
}

// rejections checks the clients that dialed as a gateway and were rejected.
func (k *checker) rejections(links []link, missing bool) {
	for _, r := range k.Server.Relay.RefusedLast {
		if k.Now.Sub(r.At) > stillRejected || acceptedSince(r, links) || k.changedSince(r) {
			continue
		}
		at := clock(r.At)
		switch r.Kind {
		case relay.UnknownID:
			if !k.found("gateway_unknown_id") {
				k.find("gateway_unknown_id", "", "Use the same id on both sides: run hermes-mobile setup (or setup --remote ADDRESS if Hermes is elsewhere)", "At %s the server rejected a gateway at %s, because it does not know its id. It knows %s.", at, r.From, k.ids())
			}
		case relay.WrongSecret:
			if !k.found("gateway_wrong_secret") {
				k.find("gateway_wrong_secret", r.Gateway, "Use the same secret on both sides: run hermes-mobile setup (or setup --remote ADDRESS if Hermes is elsewhere), then restart the gateway", "At %s the server rejected the gateway %s at %s, because its secret is wrong.", at, r.Gateway, r.From)
			}
		case relay.ClockOff:
			relation, seconds := "ahead of", int64(r.Skew.Seconds())
			if seconds < 0 {
				relation, seconds = "behind", -seconds
			}
			k.find("clock_skew", r.Gateway, "Synchronize the clocks of both machines: timedatectl set-ntp true", "At %s the server rejected the gateway %s at %s, because its clock is %d seconds %s this machine's, which says %s.",
				at, r.Gateway, r.From, seconds, relation, r.At.UTC().Format(time.DateTime))
		case relay.NoBearer, relay.BadBearer:
			if missing {
				k.find("gateway_no_secret", "", "Run hermes-mobile setup, or add GATEWAY_RELAY_ID and GATEWAY_RELAY_SECRET to its .env. A proxy must forward Authorization", "At %s the server rejected a gateway at %s: %s", at, r.From, sentence(r.Reason))
			}
		}
	}
}

// acceptedSince reports whether a rejected gateway was accepted later. If its id is unknown, acceptedSince
// compares addresses.
func acceptedSince(r relay.Refusal, links []link) bool {
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

// changedSince reports whether the settings of the Hermes on this machine were corrected after a rejection.
// The gateway has yet to restart.
func (k *checker) changedSince(r relay.Refusal) bool {
	h := k.Hermes
	if h == nil || h.Files == nil || h.Files.Broken != nil || r.Kind == relay.ClockOff || !h.Files.Changed.After(r.At) {
		return false
	}
	is := relayOf(h.Files)
	g, known := k.gateway(is.id)
	return is.complete() && known && sameSecret(g.Secret.Reveal(), is.secret) && (r.Gateway == "" || r.Gateway == is.id)
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

func (k *checker) ids() string {
	text := ""
	for i, g := range k.Gateways {
		if i > 0 {
			text += ", "
		}
		text += g.ID
	}
	return text
}

// link checks one gateway.
func (k *checker) link(l link) {
	s := l.state
	if s == nil {
		return
	}
	if s.SameIDSeen {
		k.find("same_gateway_id", l.id, "Give each gateway its own id and secret, under gateways in hermes-mobile.yaml", "Connections of the gateway %s replace each other over and over: two gateways use this id.", l.name)
	}
	if s.WakeErr != "" && !s.Online {
		k.find("gateway_not_woken", l.id, "Test MOBILE_RELAY_WAKE_URL (or wake_url) from this machine and correct it, or start the gateway by hand", "The gateway %s is offline, messages wait for it, and the server could not wake it: %s", l.name, sentence(s.WakeErr))
	}
	if !s.LastWedge.IsZero() && k.Now.Sub(s.LastWedge) < stallCounts {
		k.find("gateway_wedged", l.id, "If it keeps happening, restart the gateway and check the logs folder of its home.", "The gateway %s stalled at %s and accepted no events (%s so far).", l.name, clock(s.LastWedge), plural(int(s.Wedges), "time", "times"))
	}
	switch {
	case s.Online:
	case s.Seen:
		text := "is offline since " + clock(s.Since)
		if s.Idle {
			text = "is stopping or restarting"
		}
		k.find("agent_away", l.id, "Check the gateway with hermes gateway status, and start it with hermes gateway run. A running gateway reconnects on its own", "The agent is offline (gateway %s %s). The server queues messages.", l.name, text)
	default:
		k.notDialled(l)
	}
}

// notDialled says when to expect a gateway that has not connected yet.
func (k *checker) notDialled(l link) {
	waiting := k.Server.Started
	if h := k.Hermes; h != nil && h.Process != nil && !l.elsewhere && h.Files != nil {
		if h.Process.Since.After(waiting) {
			waiting = h.Process.Since
		}
		if h.Files.Changed.After(h.Process.Since.Add(time.Second)) {
			k.find("gateway_not_dialled", l.id, "Restart it: "+hermesCommand(h.Home, "gateway restart"), "The gateway %s has been running since %s, but its settings changed at %s: it still uses the old ones.", l.name, clock(h.Process.Since), clock(h.Files.Changed))
			return
		}
	}
	if waited := k.Now.Sub(waiting); waited > longestPause+bootTime {
		k.find("gateway_not_dialled", l.id, "Restart it with hermes gateway restart. If that does not help, check logs/gateway.log in its home",
			"The gateway %s has not connected for %s, longer than its longest pause of 5 minutes.", l.name, stretch(waited))
		return
	}
	k.find("gateway_not_dialled", l.id, "Wait, or make it connect now: hermes gateway restart", "The gateway %s has not connected yet. If it found no server at its start, it retries after 30 seconds, then with pauses of up to 5 minutes: by about %s.",
		l.name, clock(waiting.Add(longestPause+bootTime)))
}

// away reports an offline agent that is not a gateway.
func (k *checker) away() {
	if s := k.Server; s != nil && !s.AgentOnline {
		k.find("agent_away", "", "See: hermes-mobile status", "The agent is offline (%s). The server queues messages.", s.AgentDetail)
	}
}

// hermesCommand returns a hermes command line for a home.
func hermesCommand(home setup.Home, args string) string {
	if home.Profile != "" {
		return "hermes -p " + home.Profile + " " + args
	}
	return "hermes " + args
}
