package relay

import (
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"
)

// defaultProfile is the profile that a gateway has without a name.
const defaultProfile = "default"

// maxProfile bounds the name of a profile, which is kept for each conversation, in bytes.
const maxProfile = 256

// profileName matches what Hermes accepts as the name of a profile. Users see no other names.
var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// profiles are those that gateways serve, and those that conversations have chosen. It is safe for
// concurrent use, and takes no other lock.
type profiles struct {
	mu      sync.Mutex
	served  map[string][]string // by gateway, where there are several
	chosen  map[string]string   // by device
	checked time.Time           // when the gateways were last asked; of Run's goroutine alone
}

// of returns the profiles that a gateway serves, if there are several.
func (p *profiles) of(gateway string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served[gateway]
}

// serve notes the profiles that a gateway serves, and reports whether there is now a choice, or none
// any more.
func (p *profiles) serve(gateway string, names []string) (changed bool) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !profileName.MatchString(name) })
	if len(names) < 2 {
		names = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	changed = (p.served[gateway] == nil) != (names == nil)
	p.served[gateway] = names
	return changed
}

// choice returns the profile that a device has chosen, or "".
func (p *profiles) choice(device string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chosen[device]
}

func (p *profiles) choose(device, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chosen[device] = name
}

// pick returns the profile of a device's next turn: the chosen one, else the one that the gateway
// named last. A gateway silently drops what is for a profile that it does not serve, so that is an
// error.
func (p *profiles) pick(gateway, device, named string) (string, error) {
	name, served := p.choice(device), p.of(gateway)
	switch {
	case name == "" || served == nil:
		return named, nil
	case !slices.Contains(served, name):
		return "", fmt.Errorf("the profile %s of this conversation is not served any more, choose another one", name)
	}
	return name, nil
}

// namespace is how the keys of Hermes' sessions name a profile.
func namespace(profile string) string {
	switch profile {
	case "", defaultProfile:
		return "main"
	case "main":
		return "main~"
	}
	return profile
}
