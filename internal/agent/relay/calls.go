package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"hermes-mobile/internal/agent"
)

// profilesEvery is how often the profiles of the gateways are read.
const profilesEvery = 10 * time.Second

// readProfiles asks which profiles a gateway serves. It may read files, so no lock may be held.
func (a *Agent) readProfiles(g *gateway) {
	if a.opt.Profiles == nil {
		return
	}
	id := g.config().ID
	if a.profiles.serve(id, a.opt.Profiles(id)) {
		a.changed()
	}
}

// refreshProfiles reads the profiles of all gateways now and then.
func (a *Agent) refreshProfiles() {
	now := a.opt.Now()
	if a.opt.Profiles == nil || now.Sub(a.profiles.checked).Abs() < profilesEvery {
		return
	}
	a.profiles.checked = now
	a.run(func(context.Context) {
		for _, g := range a.routes.Load().list {
			a.readProfiles(g)
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
	a.readProfiles(g)
	names := a.profiles.of(g.config().ID)
	if names == nil {
		return nil, &agent.CallError{Code: agent.NotFound, Message: "the gateway serves one profile only"}
	}
	switch call.Method {
	case agent.ProfilesList:
		current := a.profiles.choice(call.Device)
		if current == "" {
			current = g.profile(call.Device)
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
	a.profiles.choose(device, name)
	return nil
}
