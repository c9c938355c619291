package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"hermes-mobile/internal/agent"
)

const (
	// defaultProfile is the one that a gateway has without a name.
	defaultProfile = "default"
	// profilesEvery is how often the profiles of connected gateways are looked at.
	profilesEvery = 10 * time.Second
)

// profileName is what Hermes takes for the name of a profile. Users are shown nothing else.
var profileName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

// profiles are those that gateways serve, and those that conversations have chosen. Safe for concurrent use; its lock is the last one taken.
type profiles struct {
	mu     sync.Mutex
	served map[string][]string // by gateway
	chosen map[string]string   // by conversation
	looked time.Time
}

// of returns the profiles that a gateway serves, where there are several.
func (p *profiles) of(gateway string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served[gateway]
}

func (p *profiles) choice(device string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.chosen[device]
}

// lookAtProfiles asks which profiles a gateway serves. It may read files, so no lock may be held.
func (a *Agent) lookAtProfiles(g *gateway) {
	if a.opt.Profiles == nil {
		return
	}
	id := g.config().ID
	now := slices.Clone(a.opt.Profiles(id))
	now = slices.DeleteFunc(now, func(name string) bool { return !profileName.MatchString(name) })
	if len(now) < 2 {
		now = nil
	}
	p := &a.profiles
	p.mu.Lock()
	changed := (p.served[id] == nil) != (now == nil)
	p.served[id] = now
	p.mu.Unlock()
	if h := a.getHost(); changed && h != nil {
		h.Changed()
	}
}

// refreshProfiles looks at the profiles of all gateways now and then.
func (a *Agent) refreshProfiles() {
	now := a.now()
	if a.opt.Profiles == nil || now.Sub(a.profiles.looked).Abs() < profilesEvery {
		return
	}
	a.profiles.looked = now // of Run's goroutine alone
	a.goDo(func(context.Context) {
		for _, g := range a.routes.Load().list {
			a.lookAtProfiles(g)
		}
	})
}

// Methods implements agent.Caller.
func (a *Agent) Methods(device string) []string {
	if g := a.serves(device); g != nil && a.profiles.of(g.config().ID) != nil {
		return []string{agent.ProfilesList, agent.ProfilesChoose}
	}
	return nil
}

// Call implements agent.Caller.
func (a *Agent) Call(ctx context.Context, call agent.Call) ([]byte, error) {
	g := a.serves(call.Device)
	if g == nil || a.running() == nil {
		return nil, agent.ErrAway
	}
	a.lookAtProfiles(g)
	names := a.profiles.of(g.config().ID)
	if names == nil {
		return nil, &agent.CallError{Code: agent.NotFound, Message: "the gateway serves one profile only"}
	}
	switch call.Method {
	case agent.ProfilesList:
		current := a.profiles.choice(call.Device)
		if current == "" {
			current = g.echoed(call.Device)
		}
		var list agent.Profiles
		for _, name := range names {
			list.Profiles = append(list.Profiles, agent.Profile{Name: name, Current: name == current})
		}
		return json.Marshal(list)
	case agent.ProfilesChoose:
		name, err := agent.Choice(call.Params, names)
		if err != nil {
			return nil, err
		}
		if err := a.choose(ctx, call.Device, name); err != nil {
			return nil, err
		}
		return []byte(`{"ok":true}`), nil
	}
	return nil, &agent.CallError{Code: agent.NotFound, Message: "the gateway does not offer this"}
}

// choose has a conversation use a profile from its next turn on. It is stored first.
func (a *Agent) choose(ctx context.Context, device, name string) error {
	if a.opt.Choose != nil {
		if err := a.opt.Choose(ctx, device, name); err != nil {
			return fmt.Errorf("relay: store the profile of a conversation: %w", err)
		}
	}
	a.profiles.mu.Lock()
	defer a.profiles.mu.Unlock()
	a.profiles.chosen[device] = name
	return nil
}

// echoed is the profile that a conversation uses without a choice.
func (g *gateway) echoed(device string) string {
	name := ""
	g.do(func() {
		if c := g.convos[device]; c != nil {
			name = c.profile
		}
	})
	if name == "" {
		return defaultProfile
	}
	return name
}

// pick returns the profile of the next turn of a conversation: the chosen one, else what the gateway named last. A gateway drops what is for
// a profile that it does not serve, without a word, so that is an error.
func (g *gateway) pick(c *convo) (string, error) {
	name, served := g.a.profiles.choice(c.device), g.a.profiles.of(g.config().ID)
	switch {
	case name == "" || served == nil:
		return c.profile, nil
	case !slices.Contains(served, name):
		return "", fmt.Errorf("the profile %s that was chosen for this conversation is not served any more, choose another one", name)
	}
	return name, nil
}

// speaksTo is the profile of an event: of the turn that runs, or of the one that the event begins.
func (g *gateway) speaksTo(c *convo) string {
	if c.turn == nil {
		name, _ := g.pick(c) // hand has refused what it cannot be
		return name
	}
	if c.turn.profile != "" {
		return c.turn.profile
	}
	return c.profile
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
