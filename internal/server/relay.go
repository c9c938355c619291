package server

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"sync"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/asowner"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/store"
)

// Keys of the store for the relay agent.
const (
	metaInstance = "relay_instance" // names this data folder to gateways
	metaVersions = "relay_versions" // of gateways, as detected
	metaProfiles = "relay_profiles" // that conversations have chosen
)

// relay builds the agent that gateways dial in to. If the settings have no gateway, it generates an
// id and a secret once, which the owner puts into Hermes' settings.
func (a *agents) relay(ctx context.Context) (agent.Agent, error) {
	instance, err := a.instance(ctx, metaInstance)
	if err != nil {
		return nil, err
	}
	var gateways []relay.Gateway
	for _, g := range a.cfg.Gateways {
		gateways = append(gateways, relay.Gateway{ID: g.ID, Secret: g.Secret.Reveal(), Name: g.Name, Devices: g.Devices, Local: g.Local,
			PublicURL: g.PublicURL, WakeURL: cmp.Or(g.WakeURL.Reveal(), a.cfg.WakeURL.Reveal())})
	}
	if len(gateways) == 0 {
		id, secret, err := ownGateway(gatewayPath(a.cfg))
		if err != nil {
			return nil, err
		}
		gateways = []relay.Gateway{{ID: id, Secret: secret, Devices: []string{"*"}, WakeURL: a.cfg.WakeURL.Reveal()}}
	}
	versions, err := a.store.Meta(ctx, metaVersions)
	if err != nil {
		return nil, err
	}
	known := map[string]relay.Version{}
	if len(versions) > 0 {
		if err := json.Unmarshal(versions, &known); err != nil {
			a.log.Warn("gateway versions corrupt, detecting them again", "err", err)
		}
	}
	detected := maps.Clone(known)
	chosen, choose, err := a.chosenProfiles(ctx)
	if err != nil {
		return nil, err
	}
	return relay.New(relay.Options{Gateways: gateways, Files: files{a.files}, Log: a.log, Key: a.key[:], Instance: instance, Keeper: a.keeper,
		From: a.from, UserOf: a.userOf, Known: known, Remember: a.rememberVersions(detected), Steers: a.steers,
		Profiles: a.profiles, Chosen: chosen, Choose: choose,
		Count: func(what, _ string) { a.metrics.Gateway.WithLabelValues(what).Inc() }}), nil
}

// steers reports whether a gateway adds messages to a running turn.
func (a *agents) steers(ctx context.Context, gateway string) bool {
	if a.cfg.Steer != "auto" {
		return a.cfg.Steer == "on"
	}
	return doctor.ProbeHermes(ctx, a.cfg, nil).Steers(gateway)
}

// rememberVersions returns a function that stores the version of a gateway without waiting for it.
func (a *agents) rememberVersions(known map[string]relay.Version) func(string, relay.Version) {
	var mu sync.Mutex
	return func(id string, v relay.Version) {
		mu.Lock()
		defer mu.Unlock()
		known[id] = v
		b, _ := json.Marshal(known)
		a.store.Go(func(tx *store.Tx) error { return tx.SetMeta(metaVersions, b) }, func(err error) {
			if err != nil {
				a.log.Error("gateway version not stored", "gateway", id, "err", err)
			}
		})
	}
}

// chosenProfiles returns the profiles that conversations have chosen, and a function that stores
// another choice.
func (a *agents) chosenProfiles(ctx context.Context) (map[string]string, func(context.Context, string, string) error, error) {
	stored, err := a.store.Meta(ctx, metaProfiles)
	if err != nil {
		return nil, nil, err
	}
	chosen := map[string]string{}
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &chosen); err != nil {
			a.log.Warn("chosen profiles corrupt, resetting", "err", err)
			chosen = map[string]string{}
		}
	}
	var mu sync.Mutex
	all := maps.Clone(chosen)
	return chosen, func(_ context.Context, device, profile string) error {
		mu.Lock()
		defer mu.Unlock()
		next := maps.Clone(all)
		next[device] = profile
		b, err := json.Marshal(next)
		if err != nil {
			return err
		}
		if err := a.store.Do(func(tx *store.Tx) error { return tx.SetMeta(metaProfiles, b) }); err != nil {
			return err
		}
		all = next
		return nil
	}, nil
}

// maxProfiles is more profiles than a person chooses from.
const maxProfiles = 100

// profiles returns the profiles that a gateway serves: those of the settings, or those that the
// only gateway of the Hermes on this machine wrote into its state file.
func (a *agents) profiles(gateway string) []string {
	for _, g := range a.cfg.Gateways {
		if g.ID == gateway && len(g.Profiles) > 0 {
			return g.Profiles
		}
	}
	if !a.cfg.HermesHomeExists || len(a.cfg.Gateways) > 1 {
		return nil
	}
	text, _, err := asowner.ReadFile(filepath.Join(a.cfg.HermesHome, "gateway_state.json"), 1<<20)
	if err != nil {
		return nil // no gateway was ever started there, or another account runs it
	}
	var state struct {
		Served []string `json:"served_profiles"`
	}
	if json.Unmarshal(text, &state) != nil || len(state.Served) > maxProfiles {
		return nil
	}
	return state.Served
}
