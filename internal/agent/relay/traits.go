package relay

import (
	"log/slog"
)

// traits is what has been learned about a gateway. The lock of the gateway must be held.
type traits struct {
	log     *slog.Logger
	learned func(v Version) // told when the version changes

	version   Version
	newerHere bool     // this connection has brought an op that only newer gateways send
	names     []string // that it said in hello, on this connection
	known     string   // the name that its frames proved to be known to it (doc/hermes/relay.md §9)
	steers    bool     // it adds texts to running turns, as far as is known

	// Prompts name the process of the gateway.
	nonce string // of the current process, where a prompt has shown it
	dead  string // of the process before, where known
}

// maxNames bounds how many names of a gateway are kept.
const maxNames = 16

// connected forgets what belongs to one connection.
func (t *traits) connected() { t.names, t.newerHere, t.known = nil, false, "" }

func (t *traits) addName(name string) {
	if len(t.names) < maxNames {
		t.names = append(t.names, name)
	}
}

// platform is the name that events carry: the first that the gateway said.
func (t *traits) platform() string {
	if len(t.names) > 0 {
		return t.names[0]
	}
	return "relay"
}

// proveName notes the platform of a frame: gateways send only names that they know.
func (t *traits) proveName(name string) {
	if name != "" && len(t.names) > 0 && name == t.names[0] {
		t.known = name
	}
}

// sessionNames are the names that the gateway may use for us in its session keys. It replaces a name
// that it does not know by "relay" (doc/hermes/relay.md §5, §9). Until that is settled, both are
// possible.
func (t *traits) sessionNames() []string {
	if t.known != "" {
		return []string{t.known}
	}
	if name := t.platform(); name != "relay" {
		return []string{"relay", name}
	}
	return []string{"relay"}
}

// refusesHome reports whether the gateway refuses /sethome: a newer one that knows us as "relay" only
// does so by design (doc/hermes/relay.md §8).
func (t *traits) refusesHome() bool {
	return t.version.hasAllOps() && (t.known == "" || t.known == "relay")
}

// saw notes an op that only gateways from 0.20 on send, or only those from 0.20.6 on.
func (t *traits) saw(a *action) {
	switch {
	case a.Op == "draft":
		t.newerHere = true
		t.setVersion(Newer)
	case newerOps[a.Op]:
		t.newerHere = true
		if t.version != Newer || a.Op == "prompt" && a.PromptID != "" && nonceOf(a.PromptID) == "" { // 0.20.0 has no nonce
			t.setVersion(Early)
		}
	}
}

func (t *traits) setVersion(v Version) {
	if t.version == v {
		return
	}
	t.version = v
	t.log.Info("gateway version detected", "version", v)
	t.learned(v)
}

// process notes the nonce of the process that asks, and reports whether it replaced another one.
func (t *traits) process(nonce string) (replaced bool) {
	if nonce == "" || nonce == t.nonce {
		return false
	}
	old := t.nonce
	t.nonce = nonce
	if old != "" {
		t.dead = old
	}
	return old != ""
}

// processEnds notes that the process of the gateway ends, and its prompts with it.
func (t *traits) processEnds() {
	if t.nonce != "" {
		t.dead, t.nonce = t.nonce, ""
	}
}

// stale reports whether prompts with this nonce belong to a process that has ended.
func (t *traits) stale(nonce string) bool {
	return nonce != "" && (t.nonce != "" && nonce != t.nonce || nonce == t.dead)
}
